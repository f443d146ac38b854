/** Text of a YAML file with its byte order mark and line ends as they are, or why there is none. */
export type YamlText =
  | { readonly kind: 'Text'; readonly text: string }
  | { readonly kind: 'Unreadable'; readonly reason: string };

export function decodeYaml(bytes: Uint8Array): YamlText {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { kind: 'Unreadable', reason: 'is not UTF-8' };
  }
  // YAML 1.1, which helm reads, ends lines at these, and YAML 1.2 does not: the same text would be two documents.
  if (/\r(?!\n)|[\u0085\u2028\u2029]/.test(text))
    return { kind: 'Unreadable', reason: 'has line ends that the versions of YAML read differently' };
  if (FORBIDDEN.test(text)) return { kind: 'Unreadable', reason: 'has control characters' };
  return { kind: 'Text', text };
}

/** The same bytes again for what `decodeYaml` read. */
export const encodeYaml = (text: string): Uint8Array => new TextEncoder().encode(text);

/** One line that a person can read as it is, which is all that an edit carries. */
export const isOneLine = (text: string): boolean => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufeff]/u.test(text);

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FORBIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;
