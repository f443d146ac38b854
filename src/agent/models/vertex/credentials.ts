import { createHash } from 'node:crypto';
import { GoogleAuth } from 'google-auth-library';
import { z } from 'zod';
import type { HttpClient } from '../../../http/client.ts';
import { ModelError } from '../port.ts';
import { fetchThrough } from './google-fetch.ts';

/** Access to Google Cloud as one account. */
export interface GoogleAccess {
  /** The account's own project; undefined when it cannot be told. */
  project(): Promise<string | undefined>;
  /** An access token with at least some minutes to live. Throws `ModelError`. */
  token(): Promise<string>;
}

export interface GoogleCredentials {
  /**
   * Access by a service account's key file, or by the process's own credentials (key file, metadata server,
   * workload identity federation) when none is given. Tokens are shared by all who ask for the same account.
   * Throws `ModelError` for a key file that cannot be used.
   */
  accessFor(keyFile?: string): GoogleAccess;
}

/** Told private keys and tokens, so that they can be kept out of what leaves the process. */
export interface SecretWatch {
  add(secret: string): void;
  forget(secret: string): void;
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** Accounts kept at once: more workflows than any installation has models for. */
const MAX_ACCOUNTS = 100;
/** Longer than any model call may take: a token must not end within one. */
const RENEW_BEFORE_END_MS = 15 * 60_000;
/** A token lives on for a while when the next one is in use. */
const WATCHED_TOKENS = 3;

export function createGoogleCredentials(options: {
  readonly http: HttpClient;
  readonly secrets: SecretWatch;
}): GoogleCredentials {
  const { http, secrets } = options;
  const accounts = new Map<string, GoogleAccess>();
  return {
    accessFor(keyFile) {
      const id = keyFile === undefined ? '' : createHash('sha256').update(keyFile).digest('hex');
      const known = accounts.get(id);
      if (known) return known;
      const access = openAccess(keyFile === undefined ? undefined : parseKeyFile(keyFile), http, secrets);
      accounts.set(id, access);
      const [oldest] = accounts.keys();
      if (accounts.size > MAX_ACCOUNTS && oldest !== undefined) accounts.delete(oldest);
      return access;
    },
  };
}

/** `universe_domain` names another cloud than Google's public one, with other hosts. */
const keyFileSchema = z.object({
  type: z.literal('service_account'),
  project_id: z.string().min(1).exactOptional(),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().exactOptional(),
  universe_domain: z.literal('googleapis.com').exactOptional(),
});

type KeyFile = z.output<typeof keyFileSchema>;

/**
 * Service accounts only: other kinds of credential files name addresses and local files that the process would
 * read and send, and who writes a Secret must not command that.
 */
function parseKeyFile(text: string): KeyFile {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw unusable('it is not JSON');
  }
  const parsed = keyFileSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw unusable(`${issue?.path.map(String).join('.') || 'top level'}: ${issue?.message ?? 'unknown fault'}`);
}

function unusable(fault: string): ModelError {
  return new ModelError(
    `The Google Cloud credentials cannot be used: ${fault}. Give the key file of a service account (JSON with type service_account).`,
    { retryable: false },
  );
}

function openAccess(keyFile: KeyFile | undefined, http: HttpClient, secrets: SecretWatch): GoogleAccess {
  if (keyFile) secrets.add(keyFile.private_key);
  const watched: string[] = [];
  const auth = new GoogleAuth({
    scopes: SCOPE,
    clientOptions: {
      transporterOptions: { fetchImplementation: fetchThrough(http) },
      eagerRefreshThresholdMillis: RENEW_BEFORE_END_MS,
    },
    ...(keyFile && { credentials: keyFile }),
  });
  const account = keyFile?.client_email ?? 'the credentials of the environment';
  return {
    async project() {
      if (keyFile) return keyFile.project_id;
      try {
        return (await auth.getProjectId()) || undefined;
      } catch {
        return undefined;
      }
    },
    async token() {
      const token = await auth.getAccessToken().catch((error: unknown) => {
        throw tokenError(error, account);
      });
      if (!token) throw tokenError(new Error('the answer holds no access token'), account);
      if (!watched.includes(token)) {
        secrets.add(token);
        watched.push(token);
        if (watched.length > WATCHED_TOKENS) secrets.forget(watched.shift() ?? '');
      }
      return token;
    },
  };
}

function tokenError(error: unknown, account: string): ModelError {
  const status = statusOf(error);
  const said = error instanceof Error ? error.message : String(error);
  const advice =
    account === 'the credentials of the environment'
      ? 'Give the operator credentials (GOOGLE_APPLICATION_CREDENTIALS or workload identity), or name a key file with model.vertex.credentialsSecretRef.'
      : 'Check that the service account and its key still exist.';
  // Without the cause: it holds the request, and that the assertion.
  return new ModelError(
    `Google Cloud gave no access token for ${account}: ${said.replace(/[.\s]+$/, '')}. ${advice}`,
    { retryable: isPassing(error, status), ...(status !== undefined && { status }) },
  );
}

/** A token server that is down, slow or out of reach; a refused key or missing credentials stay as they are. */
function isPassing(error: unknown, status: number | undefined): boolean {
  if (status !== undefined) return status === 429 || status >= 500;
  return error instanceof Error && 'config' in error;
}

/** google-auth-library throws errors of its HTTP package, whose class it does not hand out. */
const answered = z.object({ response: z.object({ status: z.number() }) });

function statusOf(error: unknown): number | undefined {
  return answered.safeParse(error).data?.response.status;
}
