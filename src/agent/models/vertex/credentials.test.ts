import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startTokens, type TokenServer } from '../../../../test/fakes/google/tokens.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import { createGoogleCredentials, type GoogleCredentials } from './credentials.ts';

let server: TokenServer;
let http: HttpClient;
let google: GoogleCredentials;
let secrets: Set<string>;

beforeEach(async () => {
  server = await startTokens();
  http = createHttpClient();
  open();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await http.close();
  await server.stop();
});

/** Google's token endpoint is on the stand-in; every other address is as it is. */
function open(): void {
  const redirected: HttpClient = {
    ...http,
    request: (request) =>
      http.request({
        ...request,
        url: String(request.url).replace('https://oauth2.googleapis.com', server.origin),
      }),
  };
  secrets = new Set();
  const watch = {
    add: (value: string) => void secrets.add(value),
    forget: (value: string) => void secrets.delete(value),
  };
  google = createGoogleCredentials({ http: redirected, secrets: watch });
}

describe('a service account', () => {
  test('signs for a token, which all who ask for the account share until it nears its end', async () => {
    const access = google.accessFor(server.keyFile);
    expect(await access.token()).toBe('ya29.token-1');
    expect(await google.accessFor(server.keyFile).token()).toBe('ya29.token-1');
    expect(await access.project()).toBe('key-project');
    expect([server.tokens, server.refusals]).toEqual([['ya29.token-1'], []]);
  });

  test('gets a new token before a call could outlive the old one, and only the newest are watched', async () => {
    await server.stop();
    server = await startTokens({ lifetimeSeconds: 600 });
    open();
    const access = google.accessFor(server.keyFile);
    for (let count = 1; count <= 5; count++) expect(await access.token()).toBe(`ya29.token-${count}`);
    expect([...secrets].filter((value) => value.startsWith('ya29.'))).toEqual([
      'ya29.token-3',
      'ya29.token-4',
      'ya29.token-5',
    ]);
    expect([...secrets].some((value) => value.includes('PRIVATE KEY'))).toBe(true);
  });

  test('whose key is refused fails for good, without the key in the message', async () => {
    const other = await startTokens();
    const stranger = other.keyFile;
    await other.stop();
    const error: unknown = await google
      .accessFor(stranger)
      .token()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ModelError', retryable: false, status: 400 });
    expect(String(error)).toMatch(
      /models@key-project.*Invalid JWT Signature.*Check that the service account/,
    );
    expect(String(error)).not.toContain('PRIVATE KEY');
  });

  test('is worth another try when the token endpoint is down', async () => {
    server.fail(503);
    const access = google.accessFor(server.keyFile);
    await expect(access.token()).rejects.toMatchObject({ retryable: true, status: 503 });
    server.fail(undefined);
    expect(await access.token()).toBe('ya29.token-1');
  });

  test('is worth another try when the token endpoint cannot be reached', async () => {
    await server.stop();
    await expect(google.accessFor(server.keyFile).token()).rejects.toMatchObject({
      retryable: true,
      status: undefined,
    });
    server = await startTokens();
  });
});

describe('a key file is refused', () => {
  test.each([
    ['that is not JSON', 'glpat-x', /it is not JSON/],
    ['of a user', JSON.stringify({ type: 'authorized_user', refresh_token: 'r' }), /type: /],
    [
      'that would read files and call addresses of its own',
      JSON.stringify({
        type: 'external_account',
        token_url: 'http://x',
        credential_source: { file: '/etc/passwd' },
      }),
      /key file of a service account/,
    ],
    ['without a key', JSON.stringify({ type: 'service_account', client_email: 'a@b' }), /private_key: /],
  ])('%s', (_name, keyFile, message) => {
    expect(() => google.accessFor(keyFile)).toThrow(message);
    expect(() => google.accessFor(keyFile)).not.toThrow(/glpat|passwd/);
  });
});

describe("the process's own credentials", () => {
  test('come from the key file that the environment names', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'google-'));
    const path = join(folder, 'key.json');
    await writeFile(path, server.keyFile);
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', path);
    const access = google.accessFor();
    expect(await access.token()).toBe('ya29.token-1');
    expect(await access.project()).toBe('key-project');
    await rm(folder, { recursive: true });
  });

  test('come from the metadata server on a machine of Google', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '');
    vi.stubEnv('HOME', '/nonexistent');
    vi.stubEnv('GCE_METADATA_HOST', new URL(server.origin).host);
    vi.stubEnv('METADATA_SERVER_DETECTION', 'assume-present');
    const access = google.accessFor();
    expect(await access.token()).toBe('ya29.token-1');
    expect(await access.project()).toBe('machine-project');
    expect(server.refusals).toEqual([]);
  });

  test('that are missing are said to be, with what to do', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '/nonexistent/key.json');
    const error: unknown = await google
      .accessFor()
      .token()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ModelError', retryable: false });
    expect(String(error)).toMatch(
      /no access token for the credentials of the environment.*GOOGLE_APPLICATION_CREDENTIALS/,
    );
  });

  test('come from workload identity federation', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'google-'));
    const path = join(folder, 'federated.json');
    const subject = join(folder, 'subject');
    await writeFile(subject, 'subject-token');
    await writeFile(
      path,
      JSON.stringify({
        type: 'external_account',
        audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${server.origin}/federated`,
        credential_source: { file: subject },
      }),
    );
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', path);
    vi.stubEnv('GOOGLE_CLOUD_PROJECT', 'env-project');
    const access = google.accessFor();
    expect(await access.token()).toBe('ya29.token-1');
    expect(await access.project()).toBe('env-project');
    expect(server.refusals).toEqual([]);
    await rm(folder, { recursive: true });
  });
});
