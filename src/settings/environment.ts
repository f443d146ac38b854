import { LABELS } from '../crds/meta.ts';
import { SettingsError } from './operator.ts';
import type { ReadSecret, SecretKeyRef, TokenTier } from './secrets.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that the configuration names, and what for. */
export interface EnvNeed {
  readonly name: string;
  readonly tier: TokenTier;
  /** Key in the file: `workflows.review.projects.group/app.action_tokens.gitlab`. */
  readonly where: string;
}

/** A variable that is not set, with every key that names it. */
export interface MissingVariable {
  readonly name: string;
  readonly where: readonly string[];
}

export function missingVariables(needs: readonly EnvNeed[], env: Environment): readonly MissingVariable[] {
  const missing = new Map<string, readonly string[]>();
  for (const { name, where } of needs) {
    if ((env[name] ?? '').trim() !== '') continue;
    missing.set(name, [...(missing.get(name) ?? []), where]);
  }
  return [...missing].map(([name, where]) => ({ name, where }));
}

export const missingLine = ({ name, where }: MissingVariable): string => `${name} (${where.join(', ')})`;

/** Throws one SettingsError that lists every variable that is not set, with the keys that name it. */
export function validateEnv(needs: readonly EnvNeed[], env: Environment): void {
  const missing = missingVariables(needs, env);
  if (missing.length === 0) return;
  const lines = missing.map((one) => `  ${missingLine(one)}`);
  throw new SettingsError(
    `environment variables that the configuration names are not set:\n${lines.join('\n')}\nset them, or take their names out of the file`,
  );
}

/** The name under which a configuration made from the file refers to the environment's variables of one tier. */
export const envSecretName = (tier: TokenTier): string => `environment-${tier}`;

export const envSecretRef = ({ name, tier }: EnvNeed): SecretKeyRef => ({
  name: envSecretName(tier),
  key: name,
});

/**
 * The environment as if it were Secrets: one for each tier, which holds the variables that the file names at that
 * tier and no others. So a variable that is named as a read token cannot be read as a write token.
 */
export function readEnvSecrets(needs: readonly EnvNeed[], env: Environment): ReadSecret {
  return async (_namespace, secretName) => {
    const own = needs.filter(({ tier }) => envSecretName(tier) === secretName);
    const [first] = own;
    if (first === undefined) return undefined;
    const data = own.flatMap(({ name }) => {
      const value = env[name];
      return value === undefined ? [] : [[name, Buffer.from(value).toString('base64')] as const];
    });
    return { labels: { [LABELS.tokenTier]: first.tier }, data: Object.fromEntries(data) };
  };
}
