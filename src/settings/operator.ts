import { z } from 'zod';

/** What `hummingbird operator` is told: flags for what people may see, environment for secrets only. */
export interface OperatorSettings {
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  /** Namespace of AgentRuns, AgentWorkflows, AgentSessions and their Secrets. */
  readonly namespace: string;
  readonly sandboxNamespace: string;
  /** Stable across restarts of the same replica (a pod's name, a host's name). */
  readonly replicaId: string;
  readonly gitlabUrl: string;
  readonly markerPrefix: string;
  /** Whether markers from before they were signed count. */
  readonly acceptUnsignedMarkers: boolean;
  /** Word that begins a command in a note. */
  readonly commandPrefix: string;
  /** Full paths of programs that workflows may have started as MCP servers. */
  readonly mcpCommands: readonly string[];
  /** Chart repositories that may lie at private addresses and speak HTTP, as `http://charts.internal/` or `oci://registry.internal:5000`. */
  readonly chartRepositories: readonly string[];
  /** File that workflows are made from; undefined: they are applied by people. */
  readonly configPath: string | undefined;
  readonly maxConcurrentRuns: number;
  readonly healthPort: number;
  readonly logLevel: string;
  readonly queue:
    | {
        readonly url: string;
        /** The router moves what comes in at `url` there, and workers read that; undefined: they read `url`. */
        readonly fifoUrl: string | undefined;
        readonly endpoint: string | undefined;
        readonly region: string;
      }
    | undefined;
  readonly store:
    | {
        readonly kind: 'S3';
        readonly bucket: string;
        readonly endpoint: string | undefined;
        readonly region: string;
      }
    | { readonly kind: 'Folder'; readonly path: string };
  readonly secrets: OperatorSecrets;
}

export interface OperatorSecrets {
  readonly orchestratorToken: string;
  /** First signs, all verify. */
  readonly markerKeys: readonly { readonly id: string; readonly key: string }[];
}

/** A setting that is missing or wrong; the message names it and says what to do. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

const Environment = z.object({
  ORCHESTRATOR_GITLAB_TOKEN: z
    .string({
      error:
        'ORCHESTRATOR_GITLAB_TOKEN is not set: give it a GitLab token with api scope for access checks and replies',
    })
    .min(1, 'ORCHESTRATOR_GITLAB_TOKEN is empty'),
  HUMMINGBIRD_MARKER_KEYS: z
    .string({
      error:
        'HUMMINGBIRD_MARKER_KEYS is not set: give it id:hex pairs, comma separated, the first signs (openssl rand -hex 32 makes a key)',
    })
    .transform((text, context) => {
      const keys = text.split(',').map((pair) => {
        const [id = '', ...rest] = pair.trim().split(':');
        return { id, key: rest.join(':') };
      });
      // By its place: what stands where the id belongs may be the key.
      const wrong = keys.findIndex(
        ({ id, key }) => !/^[\w-]{1,32}$/.test(id) || !/^[0-9a-fA-F]{32,}$/.test(key),
      );
      if (wrong !== -1)
        context.addIssue({
          code: 'custom',
          message: `HUMMINGBIRD_MARKER_KEYS: entry ${wrong + 1} is not of the form id:hex with at least 32 hex digits`,
        });
      return keys;
    }),
});

/** Keys that sign and verify markers alone, as `readOperatorSecrets` reads them. Throws SettingsError. */
export function readMarkerKeys(
  env: Readonly<Record<string, string | undefined>>,
): OperatorSecrets['markerKeys'] {
  const parsed = Environment.pick({ HUMMINGBIRD_MARKER_KEYS: true }).safeParse(env);
  if (!parsed.success) throw new SettingsError(parsed.error.issues.map((issue) => issue.message).join('; '));
  return parsed.data.HUMMINGBIRD_MARKER_KEYS;
}

/** Reads the secrets; throws one SettingsError that lists everything that is wrong. */
export function readOperatorSecrets(env: Readonly<Record<string, string | undefined>>): OperatorSecrets {
  const parsed = Environment.safeParse(env);
  if (!parsed.success) throw new SettingsError(parsed.error.issues.map((issue) => issue.message).join('; '));
  return {
    orchestratorToken: parsed.data.ORCHESTRATOR_GITLAB_TOKEN,
    markerKeys: parsed.data.HUMMINGBIRD_MARKER_KEYS,
  };
}
