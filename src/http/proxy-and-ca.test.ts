import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { createHttpClient } from './client.ts';
import { readProxies } from './proxies.ts';

/** A server with a certificate of an authority of its own, and a proxy, both on loopback, both real. */
let folder: string;
let caFile: string;
let target: Server;
let proxy: Server;
let ports: { readonly target: number; readonly proxy: number };
const reached: { readonly host: string | undefined; readonly headers: unknown }[] = [];
const tunnels: { readonly to: string | undefined; readonly auth: string | undefined }[] = [];
/** What the proxy could read. */
let passed = '';
/** Tunnels are refused with this. */
let refuseWith: number | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hummingbird-tls-'));
  const authority = await createAuthority(folder);
  ({ caFile } = authority);
  const pair = await authority.issue({
    name: 'gitlab',
    commonName: 'gitlab.test',
    names: ['DNS:gitlab.test'],
  });
  const secure = createTlsServer({ cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) });
  secure.on('request', (request, response) => {
    reached.push({ host: request.headers.host, headers: request.headers });
    if (request.url === '/away') response.writeHead(302, { location: 'https://169.254.169.254/latest/' });
    response.end('"from behind the proxy"');
  });
  const plain = createHttpServer((_request, response) => void response.writeHead(400).end());
  plain.on('connect', (request, socket) => {
    tunnels.push({ to: request.url, auth: request.headers['proxy-authorization'] });
    socket.on('error', () => {});
    if (refuseWith !== undefined)
      return void socket.end(`HTTP/1.1 ${refuseWith} No\r\ncontent-length: 0\r\n\r\n`);
    // Whatever the name: the one server that there is.
    const upstream = connect(ports.target, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.on('data', (chunk) => {
        passed += chunk.toString('latin1');
      });
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
  });
  target = secure;
  proxy = plain;
  const listen = (server: Server) =>
    new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
  ports = { target: await listen(target), proxy: await listen(proxy) };
}, 120_000);
afterAll(() => {
  for (const server of [target, proxy]) server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Authorities are read when Node starts: a process of its own asks, in the environment of an operator. */
async function ask(
  env: Readonly<Record<string, string>>,
  path = '/',
): Promise<{ text?: string; error?: string }> {
  const script = `
    import { createHttpClient } from ${JSON.stringify(new URL('./client.ts', import.meta.url).href)};
    import { readProxies } from ${JSON.stringify(new URL('./proxies.ts', import.meta.url).href)};
    const http = createHttpClient({
      proxies: readProxies(process.env),
      resolve: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
      limits: { retry: { attempts: 1 } },
    });
    const url = 'https://gitlab.test:${ports.target}${path}';
    const said = await http.request({ url, headers: { 'private-token': 'glpat-canary-0001' } }).then(
      (answer) => ({ text: answer.json() }),
      (error) => ({ error: error.message }),
    );
    await http.close();
    console.log(JSON.stringify(said));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: process.env['PATH'], ...env },
  });
  return JSON.parse(stdout);
}

const through = () => ({
  HTTPS_PROXY: `http://me:pw-1@127.0.0.1:${ports.proxy}`,
  NODE_EXTRA_CA_CERTS: caFile,
});

describe('a server behind a proxy, with a certificate of an own authority', { timeout: 120_000 }, () => {
  test('answers through a tunnel that the proxy cannot look into', async () => {
    expect(await ask(through())).toEqual({ text: 'from behind the proxy' });
    expect(tunnels.at(-1)).toEqual({
      to: `gitlab.test:${ports.target}`,
      auth: `Basic ${Buffer.from('me:pw-1').toString('base64')}`,
    });
    expect(reached.at(-1)?.host).toBe(`gitlab.test:${ports.target}`);
    expect(JSON.stringify(reached.at(-1))).not.toContain('proxy-authorization');
    expect(passed.length).toBeGreaterThan(0);
    expect(passed).not.toContain('glpat-canary');
  });

  test('is asked directly where NO_PROXY names it', async () => {
    const before = tunnels.length;
    expect(await ask({ ...through(), NO_PROXY: '.test' })).toEqual({ text: 'from behind the proxy' });
    expect(tunnels).toHaveLength(before);
  });

  test('answers the AWS SDK through a tunnel too', async () => {
    const script = `
      import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
      import { AwsRequests } from ${JSON.stringify(new URL('./aws-requests.ts', import.meta.url).href)};
      import { readProxies } from ${JSON.stringify(new URL('./proxies.ts', import.meta.url).href)};
      const client = new S3Client({
        region: 'us-east-1', forcePathStyle: true, maxAttempts: 1,
        endpoint: 'https://gitlab.test:${ports.target}',
        credentials: { accessKeyId: 'key', secretAccessKey: 'canary-secret-0001' },
        requestHandler: new AwsRequests(readProxies(process.env), { connectionTimeout: 10_000 }),
      });
      const { Body } = await client.send(new GetObjectCommand({ Bucket: 'b', Key: 'k' }));
      console.log(await Body.transformToString());
      client.destroy();`;
    const before = tunnels.length;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      cwd: fileURLToPath(new URL('../../', import.meta.url)),
      env: { PATH: process.env['PATH'], ...through() },
    });
    expect(JSON.parse(stdout)).toBe('from behind the proxy');
    expect(tunnels.slice(before)).toEqual([
      {
        to: `gitlab.test:${ports.target}`,
        auth: `Basic ${Buffer.from('me:pw-1').toString('base64')}`,
      },
    ]);
    expect(reached.at(-1)?.host).toBe(`gitlab.test:${ports.target}`);
    expect(JSON.stringify(reached.at(-1))).not.toContain('proxy-authorization');
  });

  test('is refused where nobody vouches for it, with what to set', async () => {
    const before = reached.length;
    const { error } = await ask({ HTTPS_PROXY: `http://127.0.0.1:${ports.proxy}` });
    expect(error).toMatch(/certificate.*NODE_EXTRA_CA_CERTS/);
    expect(reached).toHaveLength(before);
  });

  test('leads nobody to the metadata service, through the proxy neither', async () => {
    const before = tunnels.length;
    const { error } = await ask(through(), '/away');
    expect(error).toContain('address 169.254.169.254 may not be reached');
    expect(tunnels.slice(before).map(({ to }) => to)).toEqual([`gitlab.test:${ports.target}`]);
  });
});

describe('a proxy that refuses', () => {
  test.each([
    [403, 'the proxy answered 403; correct its rules, HTTPS_PROXY or NO_PROXY', false],
    [407, 'the proxy answered 407; put its user and password into HTTPS_PROXY', false],
    [502, 'the proxy answered 502; correct its rules, HTTPS_PROXY or NO_PROXY', true],
  ])('with %i is named, without its password', async (status, message, retryable) => {
    refuseWith = status;
    const proxies = readProxies({ HTTPS_PROXY: `http://me:pw-1@127.0.0.1:${ports.proxy}` });
    const http = createHttpClient({ proxies, limits: { retry: { attempts: 1 } } });
    try {
      const error: unknown = await http.request({ url: 'https://gitlab.test/' }).catch((reason) => reason);
      expect(error).toMatchObject({ message: `GET https://gitlab.test/: ${message}`, retryable });
      expect(String(error)).not.toContain('pw-1');
    } finally {
      refuseWith = undefined;
      await http.close();
    }
  });
});
