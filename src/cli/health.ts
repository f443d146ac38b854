import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';

export interface Readiness {
  readonly name: string;
  /** Undefined when ready, else what is wrong. */
  problem(): string | undefined;
  /** What is worth a look although it is ready. */
  notice?(): string | undefined;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** `/healthz` (the process answers), `/readyz` (each check by name), `/metrics` (Prometheus text). */
export async function serveHealth(options: {
  readonly port: number;
  readonly registry: Registry;
  readonly checks: readonly Readiness[];
}): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?')[0];
    if (request.method !== 'GET') return void response.writeHead(405).end('only GET\n');
    if (path === '/healthz') return void response.end('ok\n');
    if (path === '/readyz') {
      const lines = options.checks.map((check) => ({ ...stateOf(check), name: check.name }));
      response.statusCode = lines.every((line) => line.problem === undefined) ? 200 : 503;
      return void response.end(lines.map((line) => `${line.name}: ${line.problem ?? line.said}\n`).join(''));
    }
    if (path !== '/metrics') return void response.writeHead(404).end('try /healthz, /readyz or /metrics\n');
    options.registry.metrics().then(
      (text) => response.setHeader('content-type', options.registry.contentType).end(text),
      () => response.writeHead(500).end('metrics could not be collected\n'),
    );
  });
  await listen(server, options.port);
  return {
    // A TCP server that listens has an address with a port.
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function stateOf(check: Readiness): { readonly problem: string | undefined; readonly said: string } {
  const notice = check.notice?.();
  return { problem: check.problem(), said: notice === undefined ? 'ok' : `ok, but ${notice}` };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(new Error(`health port ${port}: ${error.message}; choose another with --health-port`)),
    );
    server.listen(port, () => resolve());
  });
}
