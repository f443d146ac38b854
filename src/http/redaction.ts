import { redactFormats } from './secret-formats.ts';

/** Removes secrets from text that leaves the process: known values, credential headers, and what looks like a key. */
export interface Redactor {
  redact(text: string): string;
  /** Values seen from now on are removed too; short ones (under 6 characters) are ignored, they match prose. */
  add(secret: string): void;
  /** For values that have ended, such as access tokens: they are not looked for any more. */
  forget(secret: string): void;
}

const MIN_SECRET_LENGTH = 6;
const SHOWN = '[redacted]';

/** Header lines and URL parameters that carry credentials, whatever their value. */
const CREDENTIAL_HEADERS =
  /\b(private-token|job-token|deploy-token|authorization|x-goog-api-key|x-api-key|cookie|set-cookie)(["']?\s*[:=]\s*["']?)(?:(Bearer|Basic)\s+)?[^\s"',}]+/gi;
const CREDENTIAL_PARAMETERS =
  /([?&](?:private_token|access_token|job_token|token|key|api_key|signature|sig|x-amz-signature|x-amz-security-token|x-amz-credential)=)[^&#\s"']+/gi;

export function createRedactor(secrets: Iterable<string> = []): Redactor {
  const values = new Set<string>();
  /** Longest first, so that a secret that contains another leaves no remainder. */
  let ordered: readonly string[] = [];
  const order = () => {
    ordered = [...values].sort((a, b) => b.length - a.length);
  };
  const add = (secret: string) => {
    if (secret.length < MIN_SECRET_LENGTH) return;
    for (const form of formsOf(secret)) values.add(form);
    order();
  };
  for (const secret of secrets) add(secret);
  return {
    add,
    forget(secret) {
      for (const form of formsOf(secret)) values.delete(form);
      order();
    },
    redact(text) {
      let clean = text;
      for (const value of ordered) clean = clean.replaceAll(value, SHOWN);
      return redactFormats(clean)
        .replace(
          CREDENTIAL_HEADERS,
          (_all, name: string, separator: string, scheme?: string) =>
            `${name}${separator}${scheme === undefined ? '' : `${scheme} `}${SHOWN}`,
        )
        .replace(CREDENTIAL_PARAMETERS, `$1${SHOWN}`);
    },
  };
}

function formsOf(secret: string): readonly string[] {
  return [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    JSON.stringify(secret).slice(1, -1),
  ];
}

/** A URL fit for a message: no user info, no values of credential parameters. */
export function shownUrl(url: URL, redactor: Pick<Redactor, 'redact'>): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return redactor.redact(shown.href);
}
