import type { Environment } from './environment.ts';
import type { SandboxBackend } from './file-schema.ts';
import { SettingsError } from './operator.ts';

/** What `hummingbird run` is told by its flags. */
export interface RunSettings {
  readonly event: string | undefined;
  readonly eventFile: string | undefined;
  readonly manifest: string | undefined;
  readonly config: string;
  readonly workflow: string | undefined;
  readonly sandbox: SandboxBackend | undefined;
  readonly image: string | undefined;
  readonly model: string | undefined;
  readonly saveSession: string | undefined;
  readonly resume: string | undefined;
  readonly message: string | undefined;
  readonly publish: 'none' | 'note';
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly namespace: string | undefined;
  readonly pool: string | undefined;
  readonly quiet: boolean;
}

/** Throws SettingsError for flags that do not go together. */
export function checkRunSettings(settings: RunSettings): void {
  const { event, eventFile, manifest, resume, message } = settings;
  const causes = [event, eventFile, manifest].filter((cause) => cause !== undefined).length;
  if (causes > 1) throw new SettingsError('give only one of --event, --event-file and -f');
  if (causes === 0 && resume === undefined)
    throw new SettingsError(
      `say what to run on: --event '{"project": "group/app", "iid": 42}', --event-file FILE, -f agentrun.yaml, or --resume DIR --message TEXT`,
    );
  if (resume !== undefined && (message ?? '').trim() === '')
    throw new SettingsError('--resume needs --message, the reply to the earlier conversation');
}

/** Backends that `hummingbird run` has. */
export type RunBackend = SandboxBackend;

/** Whether this process runs in a pod of a cluster, which then is a cluster that it may mean. */
export const isInPod = (env: Environment): boolean => (env['KUBERNETES_SERVICE_HOST'] ?? '') !== '';

/**
 * The backend that is used: what the run's manifest or its workflow wants, else the flag, else what the cluster
 * flags suggest. Throws SettingsError for one that cannot be had.
 */
export function backendOf(
  settings: Pick<RunSettings, 'sandbox' | 'context' | 'kubeconfig'>,
  wanted: RunSettings['sandbox'],
  env: Environment,
): RunBackend {
  const named = settings.context !== undefined || settings.kubeconfig !== undefined;
  const backend = wanted ?? settings.sandbox ?? (named ? 'k8spool' : 'podman');
  switch (backend) {
    case 'podman':
    case 'none':
      return backend;
    case 'k8s':
    case 'k8spool':
    case 'kubevirt':
    case 'kubevirtpool':
      if (named || isInPod(env)) return backend;
      throw new SettingsError(
        `sandbox ${backend} needs --context or --kubeconfig: a cluster is never guessed; without one use --sandbox podman`,
      );
    default:
      return backend satisfies never;
  }
}
