import { createProgress } from '../cli/progress.ts';
import { runToEnd } from '../cli/run.ts';
import { EXIT_CODES, exitCodeOf, renderJson, renderSummary } from '../cli/run-output.ts';
import { createRedactor } from '../http/redaction.ts';
import type { Environment } from '../settings/environment.ts';
import { SettingsError } from '../settings/operator.ts';
import type { RunSettings } from '../settings/run.ts';
import { joinRun } from './run.ts';

/** The process around one run, as far as it matters to it. */
export interface RunProcess {
  readonly env: Environment;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly interrupt: AbortSignal;
}

/** Runs one analysis and resolves with the exit code. */
export async function runProcess(
  settings: RunSettings,
  json: boolean,
  { env, stdout, stderr, interrupt }: RunProcess,
): Promise<number> {
  const redactor = createRedactor(secretsOf(env));
  const tell = (text: string): void => void stderr.write(redactor.redact(text));
  const screen = { isTTY: stderr.isTTY === true, columns: stderr.columns || 80, write: tell };
  const onInterrupt = () => tell('\nstopping: saving what is known and removing the sandbox\n');
  interrupt.addEventListener('abort', onInterrupt, { once: true });
  try {
    const joined = await joinRun(settings, {
      ...{ env, redactor, signal: interrupt },
      progress: (maxIterations) =>
        createProgress({ screen, maxIterations, quiet: settings.quiet, now: () => performance.now() }),
    });
    try {
      const end = await runToEnd(joined.parts, interrupt);
      stdout.write(redactor.redact(json ? `${renderJson(end)}\n` : `${end.text.trimEnd()}\n`));
      tell(`${renderSummary(end)}\n`);
      return exitCodeOf(end);
    } finally {
      await joined.close();
    }
  } catch (error) {
    if (interrupt.aborted) return EXIT_CODES.interrupted;
    tell(`hummingbird run: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof SettingsError ? EXIT_CODES.usage : EXIT_CODES.failed;
  } finally {
    interrupt.removeEventListener('abort', onInterrupt);
  }
}

/** The operator's own tokens, whether or not this run uses them: a shell that has them may run it. */
function secretsOf(env: Environment): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && /^(ORCHESTRATOR_GITLAB_TOKEN|HUMMINGBIRD_AGENT_ACTION_)/.test(name) ? [value] : [],
  );
}
