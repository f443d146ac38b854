import type { Progress } from '../cli/progress.ts';
import type { RunParts } from '../cli/run.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { Redactor } from '../http/redaction.ts';
import type { Logger } from '../kube/log.ts';
import type { Environment } from '../settings/environment.ts';
import type { Config } from '../settings/file.ts';
import { SettingsError } from '../settings/operator.ts';
import type { RunBackend, RunSettings } from '../settings/run.ts';

export interface RunSandboxes {
  readonly open: RunParts['openSandbox'];
  close(): Promise<void>;
}

export interface RunSandboxOptions {
  readonly settings: RunSettings;
  readonly config: Config;
  readonly backend: RunBackend;
  readonly run: AgentRun;
  readonly sessionId: string;
  readonly effective: RunParts['effective'];
  readonly env: Environment;
  readonly redactor: Redactor;
  readonly progress: Progress;
}

/** Reporting and saving need the sandbox after the run's own time. */
export const AFTER_RUN_MS = 5 * 60_000;

/** Throws SettingsError when no image is named. */
export function imageOf({ settings, config }: Pick<RunSandboxOptions, 'settings' | 'config'>): string {
  const image = settings.image ?? config.settings.sandbox.image;
  if (image !== undefined) return image;
  throw new SettingsError(
    `no sandbox image is named: set settings.sandbox.image in ${config.path}, or give --image`,
  );
}

/** When a sandbox that nobody removes ends by itself: not before the run is over. */
export function lifetimeSeconds({
  config,
  effective,
}: Pick<RunSandboxOptions, 'config' | 'effective'>): number {
  const least = Math.ceil((effective.timeoutMs + AFTER_RUN_MS) / 1000);
  return Math.max(config.settings.sandbox.active_deadline_seconds, least);
}

/** Only what people have to know: the room's details are for the operator's log. */
export function loggerOf({ progress, redactor }: Pick<RunSandboxOptions, 'progress' | 'redactor'>): Logger {
  const say = (fields: object, message: string): void => {
    const why = 'error' in fields ? ` (${String(fields.error)})` : '';
    progress.say(redactor.redact(`${message}${why}`));
  };
  return { debug: () => undefined, info: say, warn: say, error: say };
}
