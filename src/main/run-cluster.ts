import { isIP } from 'node:net';
import { createClient } from '../kube/client.ts';
import { type Connection, connect, defaultSource } from '../kube/config.ts';
import { type ExecConnection, execConnection } from '../kube/exec-connection.ts';
import type { KubeClient } from '../kube/port.ts';
import { createTransport } from '../kube/transport.ts';
import type { Config } from '../settings/file.ts';
import { SettingsError } from '../settings/operator.ts';
import { isInPod, type RunSettings } from '../settings/run.ts';
import type { RunSandboxOptions } from './run-sandbox-parts.ts';

/** The cluster in which a run outside the operator gets its sandbox. */
export interface RunCluster {
  readonly kube: KubeClient;
  readonly exec: ExecConnection;
  /** Undefined when the kubeconfig has a host name, which a sandbox could not resolve anyway. */
  readonly apiServer: { readonly address: string; readonly port: number } | undefined;
  /** Where the sandbox is, unless the run's manifest names another place. */
  namespace(): string;
  close(): Promise<void>;
}

/** Throws SettingsError when the kubeconfig or the context cannot be used. */
export function openCluster({
  settings,
  config,
  env,
}: Pick<RunSandboxOptions, 'settings' | 'config' | 'env'>): RunCluster {
  const connection = connectionOf(settings, env);
  const transport = createTransport(connection);
  return {
    kube: createClient(transport),
    exec: execConnection(connection),
    apiServer: addressOf(connection.server),
    namespace: () => namespaceOf(settings, config, connection.namespace),
    close: () => transport.close(),
  };
}

function addressOf({ hostname, port, protocol }: URL): RunCluster['apiServer'] {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) === 0) return undefined;
  return { address, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

function connectionOf({ kubeconfig, context }: RunSettings, env: RunSandboxOptions['env']): Connection {
  const named = kubeconfig !== undefined || context !== undefined;
  try {
    if (!named && isInPod(env)) return connect({ kind: 'InCluster' });
    return connect(
      defaultSource({
        env,
        ...(kubeconfig === undefined ? {} : { kubeconfig }),
        ...(context === undefined ? {} : { context }),
      }),
    );
  } catch (error) {
    throw new SettingsError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/**
 * The flag, else what the context says that was asked for by name, else the file. A kubeconfig without `--context`
 * is asked last: which context is current in it is seldom thought of.
 */
export function namespaceOf(
  { namespace, context, kubeconfig }: Pick<RunSettings, 'namespace' | 'context' | 'kubeconfig'>,
  config: Pick<Config, 'path' | 'settings'>,
  ofContext: string | undefined,
): string {
  if (namespace !== undefined) return namespace;
  if (context !== undefined) {
    if (ofContext !== undefined) return ofContext;
    throw new SettingsError(
      `the context ${context} names no namespace for sandboxes: give --namespace, or set one in the context`,
    );
  }
  const found = config.settings.sandbox.namespace ?? (kubeconfig === undefined ? undefined : ofContext);
  if (found !== undefined) return found;
  throw new SettingsError(
    `no namespace is named for sandboxes: give --namespace, or set settings.sandbox.namespace in ${config.path}`,
  );
}
