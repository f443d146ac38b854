import { describe, expect, it } from 'vitest';
import { readSecretKey, type SecretObject } from './secrets.ts';

const secret = (tier: string | undefined, data: Record<string, string>): SecretObject => ({
  labels: tier === undefined ? {} : { 'hummingbird.dev/token-tier': tier },
  data: Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  ),
});

const secrets: Record<string, SecretObject> = {
  'agents/read': secret('tool', { token: 'glpat-read\n' }),
  'agents/write': secret('action', { token: 'glpat-write' }),
  'agents/plain': secret(undefined, { token: 'glpat-plain' }),
};
const read = async (namespace: string, name: string) => secrets[`${namespace}/${name}`];

describe('readSecretKey', () => {
  it('returns the value of a Secret of the right tier without its final newline', async () => {
    expect(await readSecretKey(read, 'agents', { name: 'read', key: 'token' }, 'tool')).toEqual({
      kind: 'Ok',
      value: 'glpat-read',
    });
  });

  it.each([
    ['a write token where a read token belongs', 'write', 'token', 'WrongTier'],
    ['a Secret without a tier', 'plain', 'token', 'WrongTier'],
    ['a Secret that does not exist', 'absent', 'token', 'NotFound'],
    ['a key that is not there', 'read', 'tokn', 'KeyMissing'],
  ])('refuses %s and never shows a value', async (_, name, key, reason) => {
    const found = await readSecretKey(read, 'agents', { name, key }, 'tool');
    expect(found).toMatchObject({ kind: 'Invalid', reason });
    expect(JSON.stringify(found)).not.toContain('glpat');
    expect(JSON.stringify(found)).toContain(name);
  });
});
