import type { IncomingHttpHeaders } from 'node:http';
import type { FakeProject, FakeToken, GitLabState } from './state.ts';

export type ParameterType = 'string' | 'integer' | 'boolean' | 'object' | 'list';
export type Parameters = Readonly<
  Record<string, ParameterType | { readonly type: ParameterType; readonly required: true }>
>;

export interface Call {
  readonly base: string;
  readonly state: GitLabState;
  readonly token: FakeToken;
  /** Decoded path parameters by name. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Parameters that are given several times, `refs[]=a&refs[]=b`, by their name without the brackets. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Reply {
  readonly status: number;
  readonly json?: unknown;
  readonly bytes?: Uint8Array;
  /** A body of any length, made while it is sent. */
  readonly chunks?: () => Iterable<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The whole list; the server cuts the page. */
  readonly rows?: readonly unknown[];
}

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** Segments with `:name`, below `/api/v4`. */
  readonly path: string;
  readonly query?: Parameters;
  readonly body?: Parameters;
  handle(call: Call): Reply;
}

/** Ends a request with an answer of GitLab's kind. */
export class Refusal extends Error {
  readonly reply: Reply;
  constructor(reply: Reply) {
    super(`${reply.status}`);
    this.reply = reply;
  }
}

export const ok = (json: unknown): Reply => ({ status: 200, json });
export const created = (json: unknown): Reply => ({ status: 201, json });
export const list = (rows: readonly unknown[]): Reply => ({ status: 200, rows });

/** What GitLab keeps elsewhere is fetched there, by an address that is its own permission. */
export const stored = (objectStorage: string, key: string): Reply => ({
  status: 302,
  headers: {
    location: `${objectStorage}/${key}?X-Amz-Expires=600&X-Amz-Signature=${'5'.repeat(64)}`,
    'content-type': 'text/html',
  },
});

export const notFound = (what: string) =>
  new Refusal({ status: 404, json: { message: `404 ${what} Not Found` } });
export const forbidden = () => new Refusal({ status: 403, json: { message: '403 Forbidden' } });
export const badRequest = (what: string) =>
  new Refusal({ status: 400, json: { message: `400 Bad request - ${what}` } });

/** Access level of the caller. */
export const levelIn = (project: FakeProject, call: Call): number =>
  project.members.get(call.token.user.id) ?? 0;

/** GitLab takes a token in its own header or as a bearer. */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const own = headers['private-token'];
  if (typeof own === 'string') return own;
  return headers.authorization?.replace(/^Bearer /i, '');
}
