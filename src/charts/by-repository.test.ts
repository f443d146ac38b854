import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aChart } from '../../test/builders/charts.ts';
import { type ChartServer, startChartServer } from '../../test/fakes/charts/server.ts';
import { ChartUnavailableError } from '../delivery/port.ts';
import { createHttpClient } from '../http/client.ts';
import { chartsByRepository } from './by-repository.ts';

describe('charts by repository', () => {
  const http = createHttpClient({ limits: { retry: { attempts: 1 } } });
  let server: ChartServer;
  beforeAll(async () => {
    server = await startChartServer({ charts: [aChart('1.0.0')] });
  });
  afterAll(async () => {
    await server?.close();
    await http.close();
  });

  const fetch = (configured: readonly string[], repository: string) =>
    chartsByRepository({ http, configured }).fetch({ repository, name: 'web', version: '1.0.0' });

  it('fetches from a private address that people configured, by index and by registry', async () => {
    expect((await fetch([server.url], server.url)).reference.version).toBe('1.0.0');
    expect((await fetch([server.oci], server.oci)).reference.version).toBe('1.0.0');
    expect((await fetch([server.url.replace(/\/$/, '')], server.url)).reference.version).toBe('1.0.0');
  });

  it.each([
    ['nobody configured', []],
    ['is another one than the configured', ['http://127.0.0.1:1/']],
    ['only begins like the configured', ['SERVERmore']],
  ])('fetches from no private address that %s', async (_, configured) => {
    const addresses = configured.map((one) => one.replace('SERVER', server.url));
    await expect(fetch(addresses, server.url)).rejects.toThrow(ChartUnavailableError);
  });
});
