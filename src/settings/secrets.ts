import { LABELS } from '../crds/meta.ts';

export type TokenTier = 'orchestrator' | 'action' | 'tool' | 'model';

export interface SecretObject {
  readonly labels: Readonly<Record<string, string>>;
  /** Base64, as the API has it. */
  readonly data: Readonly<Record<string, string>>;
}

/** Reads one Secret; undefined when there is none. */
export type ReadSecret = (namespace: string, name: string) => Promise<SecretObject | undefined>;

export interface SecretKeyRef {
  readonly name: string;
  readonly key: string;
}

export type SecretValue =
  | { readonly kind: 'Ok'; readonly value: string }
  | {
      readonly kind: 'Invalid';
      readonly reason: 'NotFound' | 'WrongTier' | 'KeyMissing';
      readonly message: string;
    };

/**
 * The value behind a reference, only when the Secret carries the label of the tier that the reference stands
 * for: a write token named where the model's read token belongs is refused here, whatever its value is.
 */
export async function readSecretKey(
  read: ReadSecret,
  namespace: string,
  ref: SecretKeyRef,
  tier: TokenTier,
): Promise<SecretValue> {
  const where = `Secret ${namespace}/${ref.name}`;
  const secret = await read(namespace, ref.name);
  if (secret === undefined)
    return {
      kind: 'Invalid',
      reason: 'NotFound',
      message: `${where} does not exist; create it with key ${ref.key}`,
    };
  const found = secret.labels[LABELS.tokenTier];
  if (found !== tier)
    return {
      kind: 'Invalid',
      reason: 'WrongTier',
      message: `${where} has ${LABELS.tokenTier}=${found ?? '(none)'}, but this reference needs ${tier}; use a Secret of that tier`,
    };
  const encoded = secret.data[ref.key];
  const value = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('utf8').trim();
  if (value === '')
    return { kind: 'Invalid', reason: 'KeyMissing', message: `${where} has no value under key ${ref.key}` };
  return { kind: 'Ok', value };
}
