import { formsOf, knownValues, LEAST_LENGTH } from './known-values.ts';
import { redactFormats } from './secret-formats.ts';

/**
 * Removes secrets from text that leaves the process: known values in every form of `formsOf`, credential headers, and
 * what looks like a key.
 */
export interface Redactor {
  redact(text: string): string;
  /** Values seen from now on are removed too; short ones (under 6 characters) are ignored, they match prose. */
  add(secret: string): void;
  /** For values that have ended, such as access tokens: they are not looked for any more. */
  forget(secret: string): void;
}

const SHOWN = '[redacted]';

/** Header lines and URL parameters that carry credentials, whatever their value. */
const CREDENTIAL_HEADERS =
  /\b(private-token|job-token|deploy-token|authorization|x-goog-api-key|x-api-key|cookie|set-cookie)(["']?\s*[:=]\s*["']?)(?:(Bearer|Basic)\s+)?[^\s"',}]+/gi;
const CREDENTIAL_PARAMETERS =
  /([?&](?:private_token|access_token|job_token|token|key|api_key|signature|sig|x-amz-signature|x-amz-security-token|x-amz-credential)=)[^&#\s"']+/gi;

export function createRedactor(secrets: Iterable<string> = []): Redactor {
  const forms = new Map<string, readonly string[]>();
  let known = knownValues([]);
  let stale = false;
  const add = (secret: string) => {
    if (secret.length < LEAST_LENGTH || forms.has(secret)) return;
    forms.set(secret, formsOf(secret));
    stale = true;
  };
  for (const secret of secrets) add(secret);
  return {
    add,
    forget(secret) {
      stale = forms.delete(secret) || stale;
    },
    redact(text) {
      if (stale) known = knownValues([...forms.values()].flat());
      stale = false;
      return redactFormats(known.replaced(text, SHOWN))
        .replace(
          CREDENTIAL_HEADERS,
          (_all, name: string, separator: string, scheme?: string) =>
            `${name}${separator}${scheme === undefined ? '' : `${scheme} `}${SHOWN}`,
        )
        .replace(CREDENTIAL_PARAMETERS, `$1${SHOWN}`);
    },
  };
}

/** A URL fit for a message: no user info, no values of credential parameters. */
export function shownUrl(url: URL, redactor: Pick<Redactor, 'redact'>): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return redactor.redact(shown.href);
}
