import { createPrivateKey, X509Certificate } from 'node:crypto';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { TlsIdentity } from '../../http/client.ts';
import { type ToolToken, toolToken } from '../../settings/tokens.ts';

/** How to be somebody at an API server, taken from a kubeconfig. */
export interface Identity {
  /** Absent for users that have a client certificate only. */
  readonly token?: ToolToken;
  /** What the cluster and user entries say of TLS; absent when they say nothing. */
  readonly tls?: TlsIdentity;
  /** Authorities that the cluster entry names. */
  readonly ca?: string;
  /** Everything in it that nobody may read. */
  readonly secrets: readonly string[];
}

export type IdentityResult =
  | { readonly kind: 'Ok'; readonly identity: Identity }
  /** What is wrong and what to write instead; nothing of the values. */
  | { readonly kind: 'Invalid'; readonly message: string };

/**
 * The identity that a kubeconfig has for `server`: of the current context when it leads there, else of a context with
 * the namespace, else of the first that does. Everything must stand in the text itself: files and programs that it
 * names are on somebody else's machine, and a program would run with the operator's rights.
 */
export function identityFor(
  kubeconfig: string,
  { server, namespace }: { readonly server: string; readonly namespace: string },
): IdentityResult {
  try {
    const config = parsed(kubeconfig);
    const { cluster, userName } = chosen(config, server, namespace);
    const user = config.users.find(({ name }) => name === userName)?.user;
    if (user === undefined)
      throw new Unusable(`context names user ${quoted(userName)}, which it does not have`);
    return { kind: 'Ok', identity: identityOf(cluster, user, userName) };
  } catch (error) {
    if (error instanceof Unusable) return { kind: 'Invalid', message: `kubeconfig: ${error.message}` };
    throw error;
  }
}

/** The identity of the current context, and where it leads. The same rules hold. */
export function currentIdentity(
  kubeconfig: string,
): Extract<IdentityResult, { kind: 'Invalid' }> | CurrentIdentity {
  try {
    const config = parsed(kubeconfig);
    const current = config['current-context'];
    const context = config.contexts.find(({ name }) => name === current)?.context;
    const cluster = config.clusters.find(({ name }) => name === context?.cluster)?.cluster;
    const user = config.users.find(({ name }) => name === context?.user)?.user;
    if (context === undefined || cluster === undefined || user === undefined)
      throw new Unusable('current-context leads to no cluster and user; name a context that has both');
    if (!URL.canParse(cluster.server) || new URL(cluster.server).protocol !== 'https:')
      throw new Unusable(`the server of cluster ${quoted(context.cluster)} is no https:// address`);
    return {
      kind: 'Ok',
      identity: identityOf(cluster, user, context.user),
      server: normal(cluster.server),
      namespace: context.namespace,
    };
  } catch (error) {
    if (error instanceof Unusable) return { kind: 'Invalid', message: `kubeconfig: ${error.message}` };
    throw error;
  }
}

export interface CurrentIdentity {
  readonly kind: 'Ok';
  readonly identity: Identity;
  /** `https://api.example.org:6443` */
  readonly server: string;
  /** What the context names. */
  readonly namespace: string | undefined;
}

class Unusable extends Error {}

/** kubectl writes null where something is empty. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value) => value ?? undefined);
const text = optional(z.string());
const anything = optional(z.unknown());

const Cluster = z.object({
  server: z.string(),
  'certificate-authority-data': text,
  'certificate-authority': text,
  'insecure-skip-tls-verify': optional(z.boolean()),
  'tls-server-name': text,
  'proxy-url': text,
});
type Cluster = z.infer<typeof Cluster>;

const User = z.object({
  token: text,
  tokenFile: text,
  'client-certificate-data': text,
  'client-key-data': text,
  'client-certificate': text,
  'client-key': text,
  username: text,
  password: text,
  as: text,
  exec: anything,
  'auth-provider': anything,
});
type User = z.infer<typeof User>;

const list = <Schema extends z.ZodType>(schema: Schema) =>
  optional(z.array(schema)).transform((all) => all ?? []);
const KubeConfig = z.object({
  'current-context': text,
  clusters: list(z.object({ name: z.string(), cluster: Cluster })),
  contexts: list(
    z.object({
      name: z.string(),
      context: z.object({ cluster: z.string(), user: z.string(), namespace: text }),
    }),
  ),
  users: list(z.object({ name: z.string(), user: User })),
});
type KubeConfig = z.infer<typeof KubeConfig>;

function parsed(kubeconfig: string): KubeConfig {
  // Not the parser's own words: they show the line, which may hold the token.
  const document = parseDocument(kubeconfig, { prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = kubeconfig.slice(0, error.pos[0]).split('\n').length;
    throw new Unusable(`line ${line} is no YAML (${error.code})`);
  }
  const checked = KubeConfig.safeParse(plain(document));
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  throw new Unusable(`${issue?.path.join('.') || 'the text'} is not what a kubeconfig has there`);
}

function plain(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    throw new Unusable('its YAML refers to itself too often');
  }
}

function chosen(config: KubeConfig, server: string, namespace: string) {
  const clusters = new Map(config.clusters.map(({ name, cluster }) => [name, cluster]));
  const leading = config.contexts.filter(({ context }) => isServer(clusters.get(context.cluster), server));
  const best =
    leading.find(({ name }) => name === config['current-context']) ??
    leading.find(({ context }) => context.namespace === namespace) ??
    leading[0];
  const cluster = best && clusters.get(best.context.cluster);
  if (best !== undefined && cluster !== undefined) return { cluster, userName: best.context.user };
  const known = config.clusters.map(({ cluster }) => shownServer(cluster.server)).join(', ');
  throw new Unusable(`no context leads to ${server}; its clusters are ${known || '(none)'}`);
}

const isServer = (cluster: Cluster | undefined, server: string): boolean =>
  cluster !== undefined && URL.canParse(cluster.server) && normal(cluster.server) === normal(server);

function normal(server: string): string {
  const { origin, pathname } = new URL(server);
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}

const shownServer = (server: string): string => (URL.canParse(server) ? normal(server) : 'no URL');

function identityOf(cluster: Cluster, user: User, userName: string): Identity {
  refuseWhatIsElsewhere(cluster, user, quoted(userName));
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  const ca = certificates(cluster['certificate-authority-data'], 'certificate-authority-data');
  if (insecure && ca !== undefined)
    throw new Unusable(
      'the cluster has certificate-authority-data and insecure-skip-tls-verify; keep one of them',
    );
  const cert = certificates(user['client-certificate-data'], 'client-certificate-data');
  const key = privateKey(user['client-key-data']);
  if ((cert === undefined) !== (key === undefined))
    throw new Unusable(
      `user ${quoted(userName)} has one of client-certificate-data and client-key-data; add the other`,
    );
  const token = bearer(user.token, userName);
  if (token === undefined && cert === undefined)
    throw new Unusable(`user ${quoted(userName)} has no token; write one into it`);
  const servername = cluster['tls-server-name'];
  const tls: TlsIdentity = {
    ...(ca === undefined ? {} : { ca: [ca] }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(servername === undefined ? {} : { servername }),
    ...(insecure ? { rejectUnauthorized: false } : {}),
  };
  return {
    ...(token === undefined ? {} : { token: toolToken(token) }),
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
    ...(ca === undefined ? {} : { ca }),
    secrets: [token, key, user['client-key-data']].filter((secret) => secret !== undefined),
  };
}

function refuseWhatIsElsewhere(cluster: Cluster, user: User, userName: string): void {
  if (user.exec !== undefined || user['auth-provider'] !== undefined)
    throw new Unusable(
      `user ${userName} asks a program for credentials (${user.exec === undefined ? 'auth-provider' : 'exec'}), which is never run; write a token of a ServiceAccount into it`,
    );
  if (user.username !== undefined || user.password !== undefined)
    throw new Unusable(
      `user ${userName} has a password, which API servers take no more; write a token into it`,
    );
  if (user.as !== undefined)
    throw new Unusable(`user ${userName} acts as somebody else (as); write a token of that account into it`);
  if (user.tokenFile !== undefined && user.token === undefined)
    throw new Unusable(
      `user ${userName} has its token in a file (tokenFile), which is not here; write it in as token`,
    );
  const files = [
    ['client-certificate', user['client-certificate'], user['client-certificate-data']],
    ['client-key', user['client-key'], user['client-key-data']],
    ['certificate-authority', cluster['certificate-authority'], cluster['certificate-authority-data']],
  ] as const;
  for (const [name, file, data] of files)
    if (file !== undefined && data === undefined)
      throw new Unusable(
        `${name} is a file, which is not here; write it in as ${name}-data, or use kubectl config view --flatten --raw`,
      );
  if (cluster['proxy-url'] !== undefined)
    throw new Unusable('the cluster has a proxy-url, which is not used; set HTTPS_PROXY for the operator');
}

function bearer(value: string | undefined, userName: string): string | undefined {
  const token = value?.trim();
  if (token === undefined || token === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new Unusable(
    `the token of user ${quoted(userName)} holds spaces or other characters that no token has`,
  );
}

function certificates(data: string | undefined, field: string): string | undefined {
  if (data === undefined) return undefined;
  const pem = Buffer.from(data, 'base64').toString();
  try {
    new X509Certificate(pem);
    return pem;
  } catch {
    throw new Unusable(`${field} holds no certificate in base64 of PEM`);
  }
}

function privateKey(data: string | undefined): string | undefined {
  if (data === undefined) return undefined;
  const pem = Buffer.from(data, 'base64').toString();
  try {
    createPrivateKey(pem);
    return pem;
  } catch {
    throw new Unusable('client-key-data holds no private key in base64 of PEM');
  }
}

const quoted = (name: string): string => JSON.stringify(name);
