import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Connection, ConnectionTls } from './config.ts';
import { BufferGarbage } from './exec-garbage.ts';

/** An API server as exec uses it. Make one for all execs: it keeps TLS sessions, so that later handshakes resume. */
export interface ExecConnection {
  /** Base URL without a slash at its end. */
  readonly server: string;
  readonly garbage: BufferGarbage;
  /** Headers of this moment (never logged) and the agent to open the connection with. */
  prepare(): Promise<{ readonly headers: Readonly<Record<string, string>>; readonly agent: HttpAgent }>;
}

/** Throws when the connection goes through an HTTP proxy: exec does not speak CONNECT. */
export function execConnection(
  connection: Pick<Connection, 'server' | 'credentials'> & { readonly proxyUrl?: string | undefined },
): ExecConnection {
  if (connection.proxyUrl !== undefined) {
    throw new Error(
      `exec: the kubeconfig's proxy-url ${connection.proxyUrl} is not supported; use a context without one`,
    );
  }
  const isTls = connection.server.protocol === 'https:';
  let last: { readonly tls: ConnectionTls; readonly agent: HttpAgent } | undefined;
  return {
    server: connection.server.href.replace(/\/+$/, ''),
    garbage: new BufferGarbage(),
    prepare: async () => {
      const { headers, tls } = await connection.credentials();
      if (last === undefined || !sameTls(last.tls, tls)) {
        last = { tls, agent: isTls ? new HttpsAgent(tls) : new HttpAgent() };
      }
      return { headers, agent: last.agent };
    },
  };
}

/** A client certificate may be renewed while we run; a session of the old one must not be resumed then. */
function sameTls(one: ConnectionTls, other: ConnectionTls): boolean {
  return (['ca', 'cert', 'key', 'servername', 'rejectUnauthorized'] as const).every(
    (field) => String(one[field]) === String(other[field]),
  );
}
