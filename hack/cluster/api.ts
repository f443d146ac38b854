import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

/** How to reach an API server: verified TLS and a bearer token. */
export interface ApiAccess {
  readonly server: string;
  /** PEM of the certificate authority. */
  readonly ca: string | Buffer;
  readonly token: string;
}

/** One small request on a connection of its own; answers of any status are returned, a lost connection throws. */
export function apiRequest(
  access: ApiAccess,
  path: string,
  options: { method?: string; body?: unknown; timeoutMs?: number } = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const call = request(
      new URL(path, access.server),
      {
        method: options.method ?? 'GET',
        ca: access.ca,
        agent: false,
        timeout: options.timeoutMs ?? 5000,
        headers: {
          authorization: `Bearer ${access.token}`,
          accept: 'application/json',
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        );
      },
    );
    call.on('timeout', () =>
      call.destroy(new Error(`${path}: no answer in ${options.timeoutMs ?? 5000} ms`)),
    );
    call.on('error', reject);
    call.end(body);
  });
}

/** Asks again every 50 ms until `ready` says yes; throws `explain()` when that takes longer than `timeoutMs`. */
export async function waitUntil(
  ready: () => Promise<boolean> | boolean,
  timeoutMs: number,
  explain: () => string,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    if (await ready()) return;
    if (Date.now() > end) throw new Error(explain());
    await sleep(50);
  }
}
