import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { createHttpClient, type HttpClient, type TlsIdentity } from './client.ts';
import { fingerprintOf } from './tls.ts';

/** Two servers of one authority, which ask for a client certificate and say whose they got. */
let folder: string;
let http: HttpClient;
let servers: readonly Server[];
let ports: readonly number[];
let trusting: TlsIdentity;
let known: TlsIdentity;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hummingbird-tls-'));
  const authority = await createAuthority(folder);
  const ca = readFileSync(authority.caFile, 'utf8');
  const server = await authority.issue({
    name: 'server',
    commonName: 'server',
    names: ['IP:127.0.0.1', 'DNS:other.test'],
  });
  const client = await authority.issue({ name: 'client', commonName: 'robin' });
  trusting = { ca: [ca] };
  known = {
    ca: [ca],
    cert: readFileSync(client.certFile, 'utf8'),
    key: readFileSync(client.keyFile, 'utf8'),
  };
  const start = () =>
    createServer(
      {
        cert: readFileSync(server.certFile),
        key: readFileSync(server.keyFile),
        ca,
        requestCert: true,
        rejectUnauthorized: false,
      },
      (request, response) => {
        const peer = (request.socket as TLSSocket).getPeerCertificate();
        const to = new URL(request.url ?? '', 'https://x').searchParams.get('to');
        if (to !== null) response.writeHead(302, { location: to });
        response.end(JSON.stringify(peer?.subject?.CN ?? 'nobody'));
      },
    );
  servers = [start(), start()];
  ports = await Promise.all(
    servers.map(
      (one) =>
        new Promise<number>((resolve) =>
          one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port)),
        ),
    ),
  );
  http = createHttpClient({ limits: { retry: { attempts: 1 } } });
});
afterAll(async () => {
  await http.close();
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
});

const ask = async (tls: TlsIdentity | undefined, path = '/', host = '127.0.0.1') => {
  const answer = await http.request({ url: `https://${host}:${ports[0]}${path}`, ...(tls ? { tls } : {}) });
  return answer.json();
};

test('a server of an own authority is believed by who names the authority, and by nobody else', async () => {
  expect(await ask(trusting)).toBe('nobody');
  await expect(ask(undefined)).rejects.toThrow(/certificate/);
  await expect(ask({ ca: [] })).rejects.toThrow(/certificate/);
});

test('a client certificate is shown with the requests that name it, also beside others to the same server', async () => {
  const all = await Promise.all([known, trusting, known, trusting, { ...known }].map((tls) => ask(tls)));
  expect(all).toEqual(['robin', 'nobody', 'robin', 'nobody', 'robin']);
});

test('a client certificate and the trust in an authority do not go along to another origin', async () => {
  const elsewhere = `/?to=${encodeURIComponent(`https://127.0.0.1:${ports[1]}/`)}`;
  await expect(ask(known, elsewhere)).rejects.toThrow(/certificate/);
  expect(await ask(known, `/?to=${encodeURIComponent('/here')}`)).toBe('robin');
});

test('any certificate is taken only where that is said', async () => {
  expect(await ask({ rejectUnauthorized: false })).toBe('nobody');
  await expect(ask({ rejectUnauthorized: true })).rejects.toThrow(/certificate/);
});

test('the name in the certificate may be another than the host, when it is said which', async () => {
  await expect(ask(trusting, '/', 'localhost')).rejects.toThrow(/altnames/);
  expect(await ask({ ...trusting, servername: 'other.test' }, '/', 'localhost')).toBe('nobody');
  await expect(ask({ ...trusting, servername: 'third.test' }, '/', 'localhost')).rejects.toThrow(/altnames/);
});

test('what is the same has one fingerprint, which shows nothing', () => {
  const key = 'PRIVATE';
  expect(fingerprintOf({ key })).toBe(fingerprintOf({ key }));
  expect(fingerprintOf({ key })).not.toBe(fingerprintOf({ cert: key }));
  expect(fingerprintOf({ key })).not.toContain(key);
});
