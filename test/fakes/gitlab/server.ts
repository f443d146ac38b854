import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { answer } from './answer.ts';
import { type Fault, Faults } from './faults.ts';
import { type Reply, tokenOf } from './http.ts';
import type { PagingStyle } from './paging.ts';
import { cutPage } from './paging.ts';
import { type FakeToken, GitLabState } from './state.ts';

export interface RecordedRequest {
  readonly method: string;
  /** Path and query below `/api/v4/`, as sent. */
  readonly path: string;
  readonly token: string | undefined;
  readonly tokenKind: FakeToken['kind'] | undefined;
  readonly user: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Undefined when the connection was dropped. */
  readonly status: number | undefined;
}

export interface FakeGitLab {
  readonly url: string;
  readonly state: GitLabState;
  readonly faults: Faults;
  /** In the order of their arrival. */
  readonly requests: RecordedRequest[];
  /** What the real GitLab would have ignored or guessed: empty after a correct client. */
  readonly violations: string[];
  paging: PagingStyle;
  stop(): Promise<void>;
}

/** A GitLab on loopback. `port` 0 or left out: any free one. */
export async function startGitLab(
  options: { readonly port?: number; readonly now?: () => number } = {},
): Promise<FakeGitLab> {
  const state = new GitLabState(options.now);
  const server = createServer((request, response) => {
    void serve(gitlab, request, response).catch((error: unknown) => {
      gitlab.violations.push(`the stand-in failed: ${String(error)}`);
      response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const gitlab: FakeGitLab = {
    url: `http://127.0.0.1:${port}`,
    state,
    faults: new Faults(),
    requests: [],
    violations: [],
    paging: 'offset',
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return gitlab;
}

async function serve(gitlab: FakeGitLab, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', gitlab.url);
  const method = request.method ?? 'GET';
  const path = `${url.pathname}${url.search}`.replace(/^\/api\/v4\//, '');
  const body = await readBody(request);
  const fault = gitlab.faults.take(method, path);
  const index = gitlab.requests.push(recorded(gitlab, request, method, path, body)) - 1;
  const finish = (status: number | undefined) => {
    const entry = gitlab.requests[index];
    if (entry !== undefined) gitlab.requests[index] = { ...entry, status };
  };

  if (fault?.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
  if (fault?.dropBeforeHandling) return void response.destroy();
  const reply: Reply =
    fault?.status === undefined
      ? answer(gitlab, { method, url, headers: request.headers, body })
      : {
          status: fault.status,
          bytes: Buffer.from(fault.body ?? '{"message":"injected"}'),
          headers: fault.headers ?? {},
        };
  if (fault?.dropAfterHandling) return void response.destroy();
  finish(reply.status);
  write(gitlab, response, reply, url, fault);
}

function recorded(
  gitlab: FakeGitLab,
  request: IncomingMessage,
  method: string,
  path: string,
  body: string,
): RecordedRequest {
  const value = tokenOf(request.headers);
  const token = value === undefined ? undefined : gitlab.state.tokens.get(value);
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, text]) => [name, String(text)]),
  );
  return {
    method,
    path,
    token: value,
    tokenKind: token?.kind,
    user: token?.user.username,
    headers,
    body,
    status: undefined,
  };
}

function write(
  gitlab: FakeGitLab,
  response: ServerResponse,
  reply: Reply,
  url: URL,
  fault: Fault | undefined,
): void {
  const page = reply.rows === undefined ? undefined : cutPage(reply.rows, url, gitlab.paging);
  const json = page?.rows ?? reply.json;
  if (reply.chunks !== undefined) {
    response.writeHead(reply.status, { ...reply.headers });
    pipeline(Readable.from(reply.chunks()), response, () => {});
    return;
  }
  const bytes = reply.bytes ?? (json === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(json)));
  response.writeHead(reply.status, {
    'x-request-id': `req-${gitlab.requests.length}`,
    ...(json === undefined && reply.bytes === undefined ? {} : { 'content-type': 'application/json' }),
    ...page?.headers,
    ...reply.headers,
    ...(reply.status === 204 ? {} : { 'content-length': String(bytes.length) }),
  });
  if (fault?.closeMidBody) {
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy());
    return;
  }
  response.end(bytes);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
