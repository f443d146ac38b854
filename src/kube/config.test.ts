import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connect, defaultSource } from './config.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function aFile(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const aConfig = (
  name: string,
  user: object = { token: `${name}-token` },
  server = `https://${name}.test:6443/prefix/`,
) => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [
    { name, cluster: { server, 'certificate-authority-data': Buffer.from('CA').toString('base64') } },
  ],
  users: [{ name, user }],
  contexts: [{ name, context: { cluster: name, user: name, namespace: `${name}-ns` } }],
  'current-context': name,
});

test('several files are merged, the first decides the context unless one is named', async () => {
  const paths = [aFile('one', aConfig('one')), aFile('two', aConfig('two'))];
  expect(connect({ kind: 'Files', paths })).toMatchObject({ namespace: 'one-ns' });
  const two = connect({ kind: 'Files', paths, context: 'two' });
  expect(two.server.href).toBe('https://two.test:6443/prefix');
  const { headers, tls } = await two.credentials();
  expect(headers).toEqual({ Authorization: 'Bearer two-token' });
  expect(String(tls.ca)).toBe('CA');
});

test('an unknown context is named together with those there are', () => {
  const paths = [aFile('one', aConfig('one'))];
  expect(() => connect({ kind: 'Files', paths, context: 'tow' })).toThrow(
    /no context "tow" in .*; choose one of: one/,
  );
});

test.each([
  ['a file that is not there', () => join(folder, 'none'), /cannot load .*none/],
  ['a file that is no YAML', () => aFile('bad', '{'), /cannot load .*bad/],
  [
    'a server that is no URL',
    () => aFile('url', aConfig('one', {}, 'not a url')),
    /server "not a url" of cluster "one" is not a URL/,
  ],
  [
    'a context without its cluster',
    () => aFile('half', { ...aConfig('one'), clusters: [] }),
    /names no known cluster/,
  ],
])('%s is said so', (_, path, message) => {
  expect(() => connect({ kind: 'Files', paths: [path()] })).toThrow(message);
});

test('client certificates and passwords are handed on', async () => {
  const data = (text: string) => Buffer.from(text).toString('base64');
  const user = {
    'client-certificate-data': data('CERT'),
    'client-key-data': data('KEY'),
    username: 'u',
    password: 'p',
  };
  const { headers, tls } = await connect({
    kind: 'Files',
    paths: [aFile('one', aConfig('one', user))],
  }).credentials();
  expect(headers['Authorization']).toBe(`Basic ${data('u:p')}`);
  expect([String(tls.cert), String(tls.key)]).toEqual(['CERT', 'KEY']);
});

test('a token file that is rotated is read again after a minute, its newline left out', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    const file = aFile('token', 'first\n');
    const connection = connect({ kind: 'Token', server: 'https://a.test', token: { file } });
    const header = async () => (await connection.credentials()).headers['Authorization'];
    expect(await header()).toBe('Bearer first');
    aFile('token', 'second\n');
    vi.setSystemTime(Date.now() + 61_000);
    expect(await header()).toBe('Bearer second');
  } finally {
    vi.useRealTimers();
  }
});

test('the source is chosen as kubectl does', () => {
  expect(defaultSource({ kubeconfig: '/f', env: { KUBECONFIG: '/a:/b' } })).toEqual({
    kind: 'Files',
    paths: ['/f'],
  });
  expect(defaultSource({ env: { KUBECONFIG: '/a:/b', KUBERNETES_SERVICE_HOST: 'h' } })).toEqual({
    kind: 'Files',
    paths: ['/a', '/b'],
  });
  expect(defaultSource({ env: { KUBERNETES_SERVICE_HOST: 'h', HOME: '/home/u' } })).toEqual({
    kind: 'InCluster',
  });
  expect(defaultSource({ context: 'c', env: { HOME: '/home/u' } })).toEqual({
    kind: 'Files',
    paths: ['/home/u/.kube/config'],
    context: 'c',
  });
});
