import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EnvNeed } from '../environment.ts';
import type { TokenTier } from '../secrets.ts';
import { clusterSecretRef, secretCommands } from './cluster-secrets.ts';

const need = (name: string, tier: TokenTier = 'tool', where = 'x.token_env'): EnvNeed => ({
  name,
  tier,
  where,
});

describe('the Secret of a variable', () => {
  it.each([
    [need('GITLAB_TOKEN_RO'), { name: 'tool-gitlab-token-ro', key: 'token' }],
    [need('BOT', 'action', 'x.action_tokens.gitlab'), { name: 'action-bot', key: 'token' }],
    [need('GOOGLE_API_KEY', 'model'), { name: 'model-google-api-key', key: 'apiKey' }],
    [need('KUBECONFIG', 'tool', 'x.kubeconfig_env'), { name: 'tool-kubeconfig', key: 'kubeconfig' }],
  ])('of %j is %j', (one, expected) => {
    expect(clusterSecretRef(one)).toEqual(expected);
  });

  it('has a valid name of its own, whatever the variable is called', () => {
    const variable = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,20}$/);
    fc.assert(
      fc.property(variable, variable, (a, b) => {
        const [first, second] = [a, b].map((name) => clusterSecretRef(need(name)).name);
        expect(first).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
        expect(first === second).toBe(a === b);
      }),
      { numRuns: 500 },
    );
  });

  it('of a very long variable is no longer than a name may be', () => {
    const long = 'A'.repeat(400);
    expect(clusterSecretRef(need(long)).name.length).toBeLessThanOrEqual(253);
    expect(clusterSecretRef(need(long)).name).not.toBe(clusterSecretRef(need(`${long}A`)).name);
  });
});

it('each Secret is made once, labelled with its tier, and no value is an argument', () => {
  const twice = [need('READ'), need('READ'), need('READ', 'action')];
  expect(secretCommands(twice, 'agents')).toEqual([
    'printf %s "$READ" | kubectl create secret generic tool-read -n agents --from-file=token=/dev/stdin',
    'kubectl label secret tool-read -n agents hummingbird.dev/token-tier=tool',
    'printf %s "$READ" | kubectl create secret generic action-read -n agents --from-file=token=/dev/stdin',
    'kubectl label secret action-read -n agents hummingbird.dev/token-tier=action',
  ]);
});

it('a variable with the path of a kubeconfig becomes a Secret with the file', () => {
  expect(secretCommands([need('KUBECONFIG', 'tool', 'x.kubeconfig_env')], 'agents')[0]).toBe(
    'kubectl create secret generic tool-kubeconfig -n agents --from-file=kubeconfig="$KUBECONFIG"',
  );
});
