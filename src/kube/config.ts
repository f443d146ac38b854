import type { RequestOptions } from 'node:https';
import { delimiter, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';

/** Where the address and the credentials come from. */
export type ConnectionSource =
  /** kubeconfig files, merged in order as kubectl does; `context` overrides current-context. */
  | { readonly kind: 'Files'; readonly paths: readonly string[]; readonly context?: string }
  /** The pod's own ServiceAccount; its token file is read again every minute. */
  | { readonly kind: 'InCluster' }
  /** One server and one bearer token, given or in a file that may be rotated (read again every minute). */
  | {
      readonly kind: 'Token';
      readonly server: string;
      readonly token: string | { readonly file: string };
      readonly caFile?: string;
      readonly namespace?: string;
    };

/** TLS material in the shape that Node's tls, undici and ws all take. */
export interface ConnectionTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface Credentials {
  /** Authorization and, where configured, impersonation. Secret: never logged. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: ConnectionTls;
}

/** An API server and how to be somebody there. */
export interface Connection {
  /** Base URL, its path without a trailing slash kept (API servers behind a path prefix). */
  readonly server: URL;
  /** Default namespace of the context. */
  readonly namespace: string | undefined;
  /** HTTP proxy of the cluster entry. */
  readonly proxyUrl: string | undefined;
  /** Asked before every call: tokens rotate, exec plugins renew. Throws when the credential cannot be had. */
  credentials(): Promise<Credentials>;
  /** For packages that want client-node's own object. */
  readonly kubeConfig: KubeConfig;
}

/** Loads a connection. Throws an Error that names the file, the context or the cluster entry that is wrong. */
export function connect(source: ConnectionSource): Connection {
  const kubeConfig = load(source);
  const cluster = kubeConfig.getCurrentCluster();
  if (!cluster) {
    throw new Error(
      `kubeconfig: context "${kubeConfig.getCurrentContext()}" names no known cluster; choose one of: ${contextNames(kubeConfig)}`,
    );
  }
  if (!URL.canParse(cluster.server)) {
    throw new Error(`kubeconfig: server "${cluster.server}" of cluster "${cluster.name}" is not a URL`);
  }
  return {
    server: new URL(cluster.server),
    namespace: kubeConfig.getContextObject(kubeConfig.getCurrentContext())?.namespace,
    proxyUrl: cluster.proxyUrl,
    credentials: () => credentialsOf(kubeConfig),
    kubeConfig,
  };
}

/**
 * The source that kubectl would use: an explicit file, else KUBECONFIG, else the pod's ServiceAccount, else
 * `~/.kube/config`. The environment is a parameter.
 */
export function defaultSource(options: {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}): ConnectionSource {
  const context = options.context === undefined ? {} : { context: options.context };
  if (options.kubeconfig) return { kind: 'Files', paths: [options.kubeconfig], ...context };
  const listed = (options.env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (listed.length > 0) return { kind: 'Files', paths: listed, ...context };
  if (options.env['KUBERNETES_SERVICE_HOST'] && options.context === undefined) return { kind: 'InCluster' };
  return { kind: 'Files', paths: [join(options.env['HOME'] ?? '/', '.kube', 'config')], ...context };
}

function load(source: ConnectionSource): KubeConfig {
  switch (source.kind) {
    case 'Files':
      return loadFiles(source.paths, source.context);
    case 'InCluster': {
      const config = new KubeConfig();
      config.loadFromCluster();
      return config;
    }
    case 'Token':
      return loadToken(source);
    default:
      return source satisfies never;
  }
}

function loadFiles(paths: readonly string[], context: string | undefined): KubeConfig {
  const [first, ...others] = paths.map(loadFile);
  if (first === undefined) throw new Error('kubeconfig: no file given; name one with --kubeconfig');
  for (const other of others) first.mergeConfig(other, true);
  if (context !== undefined) {
    if (first.getContextObject(context) === null) {
      throw new Error(
        `kubeconfig: no context "${context}" in ${paths.join(', ')}; choose one of: ${contextNames(first)}`,
      );
    }
    first.setCurrentContext(context);
  }
  return first;
}

function loadFile(path: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`kubeconfig: cannot load ${path}: ${message}`, { cause: error });
  }
  return config;
}

function loadToken(source: Extract<ConnectionSource, { kind: 'Token' }>): KubeConfig {
  const config = new KubeConfig();
  const user =
    typeof source.token === 'string'
      ? { name: 'user', token: source.token }
      : { name: 'user', authProvider: { name: 'tokenFile', config: { tokenFile: source.token.file } } };
  config.loadFromOptions({
    clusters: [
      {
        name: 'cluster',
        server: source.server,
        skipTLSVerify: false,
        ...(source.caFile === undefined ? {} : { caFile: source.caFile }),
      },
    ],
    users: [user],
    contexts: [
      {
        name: 'context',
        cluster: 'cluster',
        user: 'user',
        ...(source.namespace === undefined ? {} : { namespace: source.namespace }),
      },
    ],
    currentContext: 'context',
  });
  return config;
}

function contextNames(config: KubeConfig): string {
  return (
    config
      .getContexts()
      .map((context) => context.name)
      .join(', ') || '(none)'
  );
}

async function credentialsOf(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // A token file that ends in a newline must not break the header.
    if (typeof value === 'string') headers[name] = value.trim();
  }
  if (options.auth) headers['Authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { headers, tls: tlsOf(options) };
}

function tlsOf(options: RequestOptions): ConnectionTls {
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return {
    ...(isPem(ca) ? { ca } : {}),
    ...(isPem(cert) ? { cert } : {}),
    ...(isPem(key) ? { key } : {}),
    ...(servername === undefined ? {} : { servername }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  };
}

function isPem(value: unknown): value is string | Buffer {
  return typeof value === 'string' || Buffer.isBuffer(value);
}
