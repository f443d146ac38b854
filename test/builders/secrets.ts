import { generateKeyPairSync } from 'node:crypto';

/** Text of a shell, which only looks like a secret. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a shell
export const PLACEHOLDER = '${GITLAB_TOKEN}';

export interface PrintedSecrets {
  /** For `sh -c`; holds none of what it prints. */
  readonly command: string;
  /** Lines of the private key's body. */
  readonly keyLines: readonly string[];
}

/**
 * A command that prints the token, a private key and the placeholder; twice, with `filler` (another command, ended
 * by a semicolon) between them. No secret stands in the command itself, since calls of the model are kept.
 */
export function printingSecrets(token: string, filler = ''): PrintedSecrets {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const [prefix, rest] = [token.slice(0, 6), token.slice(6)];
  const key = privateKey.replace('PRIVATE', 'PRI%s').replaceAll('\n', '\\n');
  const printing = `printf '%s%s\\n' '${prefix}' '${rest}'; echo '${PLACEHOLDER}'; printf '%b' '${key}' | sed s/PRI%s/PRIVATE/`;
  const script = Buffer.from(`${printing}; ${filler} ${printing}`).toString('base64');
  return {
    command: `echo ${script} | base64 -d | sh`,
    keyLines: privateKey.trim().split('\n').slice(1, -1),
  };
}
