import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { currentIdentity, identityFor } from './kubeconfig.ts';

const SERVER = 'https://api.example.org:6443';
const TOKEN = 'sha256~canary-token-0001';

let folder: string;
let ca: string;
let cert: string;
let key: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hummingbird-kubeconfig-'));
  const authority = await createAuthority(folder);
  const client = await authority.issue({ name: 'client', commonName: 'robin' });
  [ca, cert, key] = [authority.caFile, client.certFile, client.keyFile].map((file) =>
    readFileSync(file, 'utf8'),
  ) as [string, string, string];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Parts {
  readonly cluster?: Readonly<Record<string, unknown>>;
  readonly user?: Readonly<Record<string, unknown>>;
}

const kubeconfig = ({ cluster = {}, user = { token: TOKEN } }: Parts = {}) => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'main',
  preferences: {},
  clusters: [{ name: 'c', cluster: { server: SERVER, ...cluster } }],
  contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', namespace: 'team' } }],
  users: [{ name: 'u', user }],
});

const identity = (config: unknown, server = SERVER) =>
  identityFor(typeof config === 'string' ? config : stringify(config), { server, namespace: 'team' });
const ok = (config: unknown, server = SERVER) => {
  const found = identity(config, server);
  if (found.kind === 'Invalid') throw new Error(found.message);
  return found.identity;
};
const refusal = (config: unknown, server = SERVER) => {
  const found = identity(config, server);
  return found.kind === 'Invalid' ? found.message : 'accepted';
};

describe('a kubeconfig', () => {
  it('gives its token, and the token as a secret', () => {
    const { token, tls, secrets } = ok(kubeconfig());
    expect(token?.reveal()).toBe(TOKEN);
    expect(tls).toBeUndefined();
    expect(secrets).toEqual([TOKEN]);
  });

  it('may be JSON, and may have empty entries as kubectl writes them', () => {
    expect(ok(JSON.stringify(kubeconfig())).token?.reveal()).toBe(TOKEN);
    expect(refusal({ ...kubeconfig(), contexts: null })).toMatch(/no context leads/);
    expect(ok(kubeconfig({ user: { token: TOKEN, exec: null } })).token?.reveal()).toBe(TOKEN);
  });

  it('gives authorities and client certificates that stand in it, the key as a secret', () => {
    const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
    const found = ok(kubeconfig({ cluster: { 'certificate-authority-data': base64(ca) }, user }));
    expect(found.tls).toEqual({ ca: [ca], cert, key });
    expect(found.token).toBeUndefined();
    expect(found.secrets).toEqual([key, base64(key)]);
  });

  it('takes any certificate of the cluster only where it says so', () => {
    const loose = { 'insecure-skip-tls-verify': true };
    expect(ok(kubeconfig({ cluster: loose })).tls).toEqual({ rejectUnauthorized: false });
    expect(ok(kubeconfig({ cluster: { 'insecure-skip-tls-verify': false } })).tls).toBeUndefined();
    const both = { ...loose, 'certificate-authority-data': base64(ca) };
    expect(refusal(kubeconfig({ cluster: both }))).toMatch(/keep one of them/);
  });

  it('expects the name that tls-server-name says', () => {
    expect(ok(kubeconfig({ cluster: { 'tls-server-name': 'api.internal' } })).tls).toEqual({
      servername: 'api.internal',
    });
  });
});

describe('the context', () => {
  const two = {
    ...kubeconfig(),
    clusters: [
      { name: 'other', cluster: { server: 'https://api.other.example:6443' } },
      { name: 'c', cluster: { server: `${SERVER}/` } },
    ],
    contexts: [
      { name: 'other', context: { cluster: 'other', user: 'wrong', namespace: 'team' } },
      { name: 'elsewhere', context: { cluster: 'c', user: 'second', namespace: 'else' } },
      { name: 'main', context: { cluster: 'c', user: 'u', namespace: 'team' } },
    ],
    users: [
      { name: 'u', user: { token: 'of-the-namespace' } },
      { name: 'second', user: { token: 'of-another-namespace' } },
      { name: 'wrong', user: { token: 'of-another-cluster' } },
    ],
  };

  it.each([
    ['is the current one when it leads to the server', 'elsewhere', 'of-another-namespace'],
    ['is that of the namespace when the current one leads elsewhere', 'other', 'of-the-namespace'],
    ['is that of the namespace when none is current', '', 'of-the-namespace'],
  ])('%s', (_what, current, token) => {
    expect(ok({ ...two, 'current-context': current }).token?.reveal()).toBe(token);
  });

  it('is never one of another server: its token would be sent to the wrong one', () => {
    expect(refusal(two, 'https://api.third.example:6443')).toBe(
      'kubeconfig: no context leads to https://api.third.example:6443; its clusters are https://api.other.example:6443, https://api.example.org:6443',
    );
    expect(refusal(kubeconfig(), 'https://api.example.org')).toMatch(/no context leads/);
    expect(refusal(kubeconfig(), 'http://api.example.org:6443')).toMatch(/no context leads/);
  });
});

describe('a kubeconfig that cannot be used says what to write, and nothing that is secret', () => {
  it.each<[string, Parts, RegExp]>([
    [
      'a program',
      { user: { exec: { command: 'oc' }, token: TOKEN } },
      /"u" asks a program for credentials \(exec\), which is never run; write a token/,
    ],
    [
      'an auth provider',
      { user: { 'auth-provider': { name: 'oidc' } } },
      /\(auth-provider\), which is never run/,
    ],
    ['a token in a file', { user: { tokenFile: '/var/run/token' } }, /tokenFile.*write it in as token/],
    [
      'a certificate in a file',
      { user: { 'client-certificate': '/c', 'client-key': '/k' } },
      /client-certificate is a file.*client-certificate-data/,
    ],
    [
      'an authority in a file',
      { cluster: { 'certificate-authority': '/ca' } },
      /certificate-authority is a file/,
    ],
    ['a password', { user: { username: 'admin', password: 'canary-password' } }, /has a password/],
    ['another identity', { user: { token: TOKEN, as: 'root' } }, /acts as somebody else/],
    ['no credentials', { user: {} }, /has no token; write one into it/],
    ['an empty token', { user: { token: ' ' } }, /has no token/],
    ['a token of two lines', { user: { token: `${TOKEN}\nx: y` } }, /no token has/],
    [
      'a certificate that is none',
      { user: { 'client-certificate-data': base64('canary'), 'client-key-data': base64('canary') } },
      /holds no certificate/,
    ],
    [
      'an authority that is none',
      { cluster: { 'certificate-authority-data': 'canary' } },
      /holds no certificate/,
    ],
    ['a proxy of its own', { cluster: { 'proxy-url': 'http://proxy' } }, /set HTTPS_PROXY/],
  ])('%s', (_what, parts, message) => {
    const said = refusal(kubeconfig(parts));
    expect(said).toMatch(message);
    expect(said).not.toContain('canary');
  });

  it('a certificate without its key', () => {
    expect(refusal(kubeconfig({ user: { 'client-certificate-data': base64(cert) } }))).toMatch(
      /add the other/,
    );
    const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(cert) };
    expect(refusal(kubeconfig({ user }))).toMatch(/no private key/);
  });

  it.each([
    [`users:\n  - name: u\n    user: {token: ${TOKEN}\n`, /line \d is no YAML/],
    [
      `users: [{name: u, user: {token: [${TOKEN}]}}]`,
      /users\.0\.user\.token is not what a kubeconfig has there/,
    ],
    [TOKEN, /the text is not what a kubeconfig has there/],
    [
      `a: &a [${TOKEN}]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]`,
      /refers to itself too often/,
    ],
    [
      'contexts: [{name: main, context: {cluster: c, user: nobody}}]\nclusters: [{name: c, cluster: {server: "https://api.example.org:6443"}}]',
      /names user "nobody", which it does not have/,
    ],
  ])('%#: text that is none', (text, message) => {
    const said = refusal(text);
    expect(said).toMatch(message);
    expect(said).not.toContain('canary');
  });
});

describe('the current context', () => {
  it('says where it leads, and who goes there', () => {
    const found = currentIdentity(stringify(kubeconfig()));
    expect(found).toMatchObject({ kind: 'Ok', server: SERVER, namespace: 'team' });
    expect(found.kind === 'Ok' && found.identity.token?.reveal()).toBe(TOKEN);
  });

  it.each([
    ['has no current context', { ...kubeconfig(), 'current-context': '' }, /leads to no cluster and user/],
    ['leads to no cluster', { ...kubeconfig(), clusters: [] }, /leads to no cluster and user/],
    ['leads in the clear', kubeconfig({ cluster: { server: 'http://api.example.org' } }), /no https/],
    ['starts a program', kubeconfig({ user: { exec: { command: 'x' } } }), /never run/],
  ])('is refused when it %s', (_, config, message) => {
    const found = currentIdentity(stringify(config));
    expect(found.kind === 'Invalid' && found.message).toMatch(message);
  });
});
