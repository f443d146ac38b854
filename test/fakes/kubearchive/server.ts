import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { type Answer, answer } from './answer.ts';
import { ArchiveState } from './state.ts';

export interface RecordedRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly status: number;
  readonly gzip: boolean;
}

/** What goes wrong, asked for each list and log in turn; `number` counts them from 1. */
export interface ArchiveFaults {
  /** The connection is lost after so many items of a list, or bytes of a log. */
  breakOffAfter?: (request: { readonly number: number; readonly path: string }) => number | undefined;
  /** Answered instead, as a proxy in front would. */
  status?: (request: { readonly number: number; readonly path: string }) => number | undefined;
}

export interface FakeKubeArchive {
  readonly url: string;
  readonly state: ArchiveState;
  readonly faults: ArchiveFaults;
  /** In the order of their arrival. */
  readonly requests: RecordedRequest[];
  /** What the real one would have ignored: empty after a correct client. */
  readonly violations: string[];
  /** As versions before August 2025: the last page has a token too, which leads to an empty page. Default false. */
  endsWithToken: boolean;
  /** Default false: metadata before the items, as it writes them today. */
  metadataLast: boolean;
  stop(): Promise<void>;
}

/** A KubeArchive on loopback: compresses for whoever takes it, and says that everything is plain text. */
export async function startKubeArchive(options: { readonly port?: number } = {}): Promise<FakeKubeArchive> {
  const server = createServer((request, response) => {
    void serve(archive, request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const archive: FakeKubeArchive = {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    state: new ArchiveState(),
    faults: {},
    requests: [],
    violations: [],
    endsWithToken: false,
    metadataLast: false,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return archive;
}

async function serve(
  archive: FakeKubeArchive,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '', archive.url);
  if (request.method !== 'GET') archive.violations.push(`${request.method} ${url.pathname}: only read here`);
  const number = archive.requests.filter(({ path }) => path === url.pathname).length + 1;
  const fault = archive.faults.status?.({ number, path: url.pathname });
  const found: Answer =
    fault === undefined
      ? answer(archive, url, request.headers)
      : { kind: 'Error', status: fault, message: 'upstream connect error' };
  const gzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  archive.requests.push({
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    status: found.kind === 'Error' ? found.status : 200,
    gzip,
  });
  if (found.kind === 'Error') {
    response.writeHead(found.status, { 'content-type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify({ message: found.message }));
    return;
  }
  const breakAt = archive.faults.breakOffAfter?.({ number, path: url.pathname });
  response.writeHead(200, {
    'content-type': 'text/plain; charset=utf-8',
    ...(gzip ? { 'content-encoding': 'gzip' } : {}),
  });
  const body = Readable.from(bodyOf(archive, found, breakAt), { objectMode: false });
  // Each piece is on its way before the next: a connection that is lost then has brought what was written.
  for await (const chunk of gzip ? body.pipe(createGzip({ level: 1 })) : body)
    await new Promise<void>((resolve, reject) =>
      response.write(chunk, (error) => (error ? reject(error) : resolve())),
    );
  if (breakAt === undefined) response.end();
  else response.destroy();
}

function* bodyOf(
  archive: FakeKubeArchive,
  found: Exclude<Answer, { kind: 'Error' }>,
  breakAt: number | undefined,
): Generator<Buffer> {
  switch (found.kind) {
    case 'Object':
      yield Buffer.from(found.json);
      return;
    case 'Log':
      yield Buffer.from(found.bytes.subarray(0, breakAt));
      return;
    default:
      break;
  }
  const metadata = `"metadata": {"continue": "${found.token}"}`;
  const head = `{"kind": "List", "apiVersion": "v1", `;
  yield Buffer.from(archive.metadataLast ? `${head}"items": [` : `${head}${metadata}, "items": [`);
  for (const [index, row] of found.rows.slice(0, breakAt).entries())
    yield Buffer.from(`${index === 0 ? '' : ','}${row.json}`);
  if (breakAt !== undefined) return;
  yield Buffer.from(archive.metadataLast ? `], ${metadata}}` : ']}');
}
