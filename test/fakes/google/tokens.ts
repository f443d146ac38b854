import { createVerify, generateKeyPairSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { listen, parseJson, readBody, sendJson } from '../model-http.ts';

export interface TokenServer {
  /** Scheme and authority. */
  readonly origin: string;
  /** Of a service account that this server knows. */
  readonly keyFile: string;
  /** Every token that was given out, newest last. */
  readonly tokens: readonly string[];
  /** What was refused, with its reason. */
  readonly refusals: readonly string[];
  isToken(token: string): boolean;
  /** Answers all that follows with this status. */
  fail(status: number | undefined): void;
  stop(): Promise<void>;
}

const PROJECT = 'key-project';
const EMAIL = 'models@key-project.iam.gserviceaccount.com';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/**
 * Google's token endpoint (`/token`), its exchange for other identities (`/federated`) and the metadata server of
 * its machines. Checks the signed assertion of a service account as the real one does. A stand-in for tests.
 */
export async function startTokens({ lifetimeSeconds = 3600 } = {}): Promise<TokenServer> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const tokens: string[] = [];
  const refusals: string[] = [];
  let failure: number | undefined;

  function give(response: ServerResponse): void {
    const token = `ya29.token-${tokens.length + 1}`;
    tokens.push(token);
    sendJson(response, 200, { access_token: token, expires_in: lifetimeSeconds, token_type: 'Bearer' });
  }

  function refuse(response: ServerResponse, status: number, why: string): void {
    refusals.push(why);
    sendJson(response, status, { error: 'invalid_grant', error_description: why });
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const body = await readBody(request);
    if (failure !== undefined) return refuse(response, failure, 'injected fault');
    if (request.method === 'POST' && pathname === '/token') {
      const fault = faultInGrant(new URLSearchParams(body), publicKey);
      return fault ? refuse(response, 400, fault) : give(response);
    }
    if (request.method === 'POST' && pathname === '/federated') {
      const form = new URLSearchParams(body);
      const fault = form.get('subject_token') === 'subject-token' ? undefined : 'unknown subject';
      return fault ? refuse(response, 400, fault) : give(response);
    }
    if (request.headers['metadata-flavor'] !== 'Google')
      return refuse(response, 403, 'Missing Metadata-Flavor:Google header.');
    response.setHeader('metadata-flavor', 'Google');
    switch (pathname) {
      case '/computeMetadata/v1/instance':
        return sendJson(response, 200, {});
      case '/computeMetadata/v1/project/project-id':
        response.end('machine-project');
        return;
      case '/computeMetadata/v1/instance/service-accounts/default/token':
        return give(response);
      default:
        return refuse(response, 404, `Unknown path ${pathname}`);
    }
  }

  return {
    ...(await listen(handle)),
    keyFile: JSON.stringify({
      type: 'service_account',
      project_id: PROJECT,
      private_key_id: 'key-1',
      private_key: privateKey,
      client_email: EMAIL,
      token_uri: 'https://oauth2.googleapis.com/token',
    }),
    tokens,
    refusals,
    isToken: (token) => tokens.includes(token),
    fail: (status) => {
      failure = status;
    },
  };
}

const claims = z.object({
  iss: z.string(),
  scope: z.string(),
  aud: z.string(),
  exp: z.number(),
  iat: z.number(),
});

function faultInGrant(form: URLSearchParams, publicKey: string): string | undefined {
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 'wrong grant type';
  const [head = '', payload = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const verify = createVerify('RSA-SHA256').update(`${head}.${payload}`);
  if (!verify.verify(publicKey, signature, 'base64url')) return 'Invalid JWT Signature.';
  const read = claims.safeParse(parseJson(Buffer.from(payload, 'base64url').toString()));
  if (!read.success) return 'Invalid JWT: claims are missing';
  const { iss, scope, aud, exp, iat } = read.data;
  if (iss !== EMAIL) return 'Invalid JWT: unknown account';
  if (scope !== SCOPE) return `Invalid JWT: unexpected scope ${scope}`;
  if (aud !== 'https://oauth2.googleapis.com/token') return 'Invalid JWT: wrong audience';
  return exp - iat > 3600 ? 'Invalid JWT: lives too long' : undefined;
}
