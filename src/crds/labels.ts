import { createHash } from 'node:crypto';
import { LABELS } from './meta.ts';

/** Values of labels have at most 63 characters; names of most objects may have 253. */
const MAX_LABEL_VALUE = 63;
const DIGEST_CHARACTERS = 10;

/**
 * A name as the value of a label: itself where that is allowed, else cut, with a digest of the whole in its
 * place, so that two long names never share a value. The same name gives the same value.
 */
export function labelValue(name: string): string {
  const valid = name.length <= MAX_LABEL_VALUE && /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/.test(name);
  if (valid) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS);
  const readable = name
    .replace(/[^-A-Za-z0-9_.]+/g, '-')
    .slice(0, MAX_LABEL_VALUE - DIGEST_CHARACTERS - 1)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
  return readable === '' ? digest : `${readable}-${digest}`;
}

/** `a=b,c=d`, as `kubectl -l` and the API take it. Values must be values of labels already. */
export function labelSelector(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}

/** Labels of a SandboxPool's sandboxes that nobody has claimed; also what its Deployment selects. */
export const standbyLabels = (pool: string): Readonly<Record<string, string>> => ({
  [LABELS.pool]: labelValue(pool),
  [LABELS.role]: 'standby',
});
