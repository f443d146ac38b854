import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { kubeconfigFor, TOKEN } from '../../../test/builders/konflux.ts';
import { type HttpClient, HttpError, type HttpRequest } from '../../http/client.ts';
import { toolToken } from '../../settings/tokens.ts';
import { type KonfluxOpened, openKonflux } from './access.ts';

const SERVER = 'https://api.example.org:6443';
const ARCHIVE = 'https://archive.example.org/';

let folder: string;
let ca: string;
let user: { readonly 'client-certificate-data': string; readonly 'client-key-data': string };
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hummingbird-konflux-'));
  const authority = await createAuthority(folder);
  ca = readFileSync(authority.caFile, 'utf8');
  const { certFile, keyFile } = await authority.issue({ name: 'client', commonName: 'robin' });
  user = { 'client-certificate-data': base64(certFile), 'client-key-data': base64(keyFile) };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const base64 = (file: string) => readFileSync(file).toString('base64');

/** Keeps what it is asked; answers 404. */
function recording() {
  const requests: HttpRequest[] = [];
  const refuse = async (request: HttpRequest): Promise<never> => {
    requests.push(request);
    throw new HttpError('none', { method: 'GET', url: String(request.url), retryable: false, status: 404 });
  };
  const http: HttpClient = { request: refuse, stream: refuse, close: async () => undefined };
  return { http, requests };
}

async function asked(kubeconfig: string, secrets: string[] = []) {
  const { http, requests } = recording();
  const opened = open(http, kubeconfig, secrets);
  if (opened.kind === 'Invalid') return opened.message;
  const { cluster, archive } = opened.access;
  for (const api of [cluster, archive])
    expect(await api?.read('/api/v1/namespaces/team/pods/x', AbortSignal.timeout(1000))).toBeUndefined();
  return requests;
}

function open(http: HttpClient, kubeconfig: string, secrets: string[]): KonfluxOpened {
  return openKonflux({
    http,
    clusterUrl: `${SERVER}/ns/team`,
    kubearchiveUrl: ARCHIVE,
    kubeconfig: toolToken(kubeconfig),
    onSecret: (secret) => secrets.push(secret),
  });
}

describe('access to Konflux', () => {
  it('sends the token to the cluster and to KubeArchive, and reports it as a secret before', async () => {
    const secrets: string[] = [];
    const requests = await asked(kubeconfigFor(SERVER), secrets);
    expect(requests).toMatchObject([
      { url: `${SERVER}/api/v1/namespaces/team/pods/x`, headers: { authorization: `Bearer ${TOKEN}` } },
      {
        url: 'https://archive.example.org/api/v1/namespaces/team/pods/x',
        headers: { authorization: `Bearer ${TOKEN}` },
      },
    ]);
    expect(secrets).toEqual([TOKEN]);
  });

  it('believes the authority in the kubeconfig: alone for the cluster, beside the known ones for KubeArchive', async () => {
    const cluster = { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
    const requests = await asked(kubeconfigFor(SERVER, { token: TOKEN }, cluster));
    if (typeof requests === 'string') throw new Error(requests);
    expect(requests[0]?.tls).toEqual({ ca: [ca] });
    expect(requests[1]?.tls?.ca).toContain(ca);
    expect(requests[1]?.tls?.ca?.length).toBeGreaterThan(10);
  });

  it('takes any certificate of the cluster where that is written, and none of KubeArchive for it', async () => {
    const requests = await asked(
      kubeconfigFor(SERVER, { token: TOKEN }, { 'insecure-skip-tls-verify': true }),
    );
    expect(requests).toMatchObject([{ tls: { rejectUnauthorized: false } }, {}]);
    expect(requests[1]).not.toHaveProperty('tls');
  });

  it('shows a client certificate to the cluster only', async () => {
    const requests = await asked(kubeconfigFor(SERVER, { token: TOKEN, ...user }));
    expect(requests[0]).toMatchObject({ tls: { cert: expect.stringMatching(/^-----BEGIN/) } });
    expect(requests[1]).not.toHaveProperty('tls');
  });

  it('needs a token where there is a KubeArchive', async () => {
    expect(await asked(kubeconfigFor(SERVER, user))).toMatch(
      /KubeArchive takes tokens only; give the user one/,
    );
  });

  it('is not had with what the kubeconfig has for another server', async () => {
    expect(await asked(kubeconfigFor('https://api.evil.example:6443'))).toMatch(/no context leads to/);
  });

  it('needs a namespace in the URL', () => {
    const { http } = recording();
    const opened = openKonflux({ http, clusterUrl: SERVER, kubeconfig: toolToken(kubeconfigFor(SERVER)) });
    expect(opened).toMatchObject({ kind: 'Invalid', message: expect.stringMatching(/\/ns\/NAMESPACE/) });
  });
});
