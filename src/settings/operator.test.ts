import { describe, expect, it } from 'vitest';
import { readOperatorSecrets, SettingsError } from './operator.ts';

const key = 'ab'.repeat(32);
const env = { ORCHESTRATOR_GITLAB_TOKEN: 'glpat-secret', HUMMINGBIRD_MARKER_KEYS: `k2:${key}, k1:${key}` };

describe('readOperatorSecrets', () => {
  it('reads the token and the keys, of which the first signs', () => {
    expect(readOperatorSecrets(env)).toEqual({
      orchestratorToken: 'glpat-secret',
      markerKeys: [
        { id: 'k2', key },
        { id: 'k1', key },
      ],
    });
  });

  it('says all that is missing at once, with what to do', () => {
    expect(() => readOperatorSecrets({})).toThrow(SettingsError);
    expect(() => readOperatorSecrets({})).toThrow(
      /ORCHESTRATOR_GITLAB_TOKEN.*HUMMINGBIRD_MARKER_KEYS.*openssl/,
    );
  });

  it.each([
    ['no id', key],
    ['a key that is no hex', `k1:${'zz'.repeat(32)}`],
    ['a key that is too short', 'k1:abcd'],
    ['something behind the key', `k1:${key}:more`],
    ['nothing after the comma', `k1:${key},`],
  ])('refuses marker keys with %s, and does not show them', (_, HUMMINGBIRD_MARKER_KEYS) => {
    const read = () => readOperatorSecrets({ ...env, HUMMINGBIRD_MARKER_KEYS });
    expect(read).toThrow(/HUMMINGBIRD_MARKER_KEYS.*id:hex/);
    expect(read).not.toThrow(HUMMINGBIRD_MARKER_KEYS);
  });

  it('refuses an empty token', () => {
    expect(() => readOperatorSecrets({ ...env, ORCHESTRATOR_GITLAB_TOKEN: '' })).toThrow(/is empty/);
  });
});
