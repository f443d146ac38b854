import { createServer } from 'node:http';

export interface FakeObjectStorage {
  /** What a project's `objectStorage` is set to. */
  readonly url: string;
  /** By key. */
  readonly objects: Map<string, Uint8Array>;
  /** What no signed address is asked with: empty after a correct client. */
  readonly violations: string[];
  stop(): Promise<void>;
}

const CREDENTIALS = ['private-token', 'authorization', 'cookie'];

/** The bucket that GitLab keeps archives and traces in: another origin, where a signed address is all that is needed. */
export async function startObjectStorage(): Promise<FakeObjectStorage> {
  const objects = new Map<string, Uint8Array>();
  const violations: string[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://storage');
    const carried = CREDENTIALS.filter((name) => request.headers[name] !== undefined);
    if (carried.length > 0) violations.push(`${url.pathname} was asked with ${carried.join(', ')}`);
    const bytes = objects.get(decodeURIComponent(url.pathname.slice('/bucket/'.length)));
    if (!url.searchParams.has('X-Amz-Signature')) response.writeHead(403).end();
    else if (bytes === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/bucket`,
    objects,
    violations,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
