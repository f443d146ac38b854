import { Counter, Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HealthServer, serveHealth } from './health.ts';

describe('the health server', () => {
  let problem: string | undefined;
  let notice: string | undefined;
  let server: HealthServer;
  beforeEach(async () => {
    problem = undefined;
    notice = undefined;
    const registry = new Registry();
    new Counter({ name: 'things_total', help: 'Things.', registers: [registry] }).inc();
    server = await serveHealth({
      port: 0,
      registry,
      checks: [
        { name: 'caches', problem: () => undefined },
        { name: 'lease', problem: () => problem, notice: () => notice },
      ],
    });
  });
  afterEach(() => server.close());
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
    return { status: response.status, text: await response.text() };
  };

  it('is alive whether or not it is ready', async () => {
    problem = 'lost';
    expect(await ask('/healthz')).toEqual({ status: 200, text: 'ok\n' });
  });

  it('is ready when every check says so, and else names the one that does not', async () => {
    expect(await ask('/readyz?verbose')).toEqual({ status: 200, text: 'caches: ok\nlease: ok\n' });
    problem = 'lost';
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'caches: ok\nlease: lost\n' });
  });

  it('is ready although something is worth a look, and says what', async () => {
    notice = 'something is odd';
    expect(await ask('/readyz')).toEqual({
      status: 200,
      text: 'caches: ok\nlease: ok, but something is odd\n',
    });
  });

  it('shows metrics, and nothing else', async () => {
    expect((await ask('/metrics')).text).toContain('things_total 1');
    expect((await ask('/etc/passwd')).status).toBe(404);
    expect((await ask('/healthz', 'POST')).status).toBe(405);
  });

  it('says which port cannot be had, and what to do', async () => {
    const second = serveHealth({ port: server.port, registry: new Registry(), checks: [] });
    await expect(second).rejects.toThrow(new RegExp(`${server.port}.*--health-port`));
  });
});
