import { readFile } from 'node:fs/promises';
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

/** Whether the variable holds the path of a file, and what is meant is in the file. */
export const namesFile = ({ where }: Pick<EnvNeed, 'where'>): boolean => where.endsWith('.kubeconfig_env');

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
 * tier and no others. So a variable that is named as a read token cannot be read as a write token. Reading rejects with
 * SettingsError when a file that a variable names cannot be read.
 */
export function readEnvSecrets(needs: readonly EnvNeed[], env: Environment): ReadSecret {
  return async (_namespace, secretName) => {
    const own = needs.filter(({ tier }) => envSecretName(tier) === secretName);
    const [first] = own;
    if (first === undefined) return undefined;
    const data = await Promise.all(
      own.map(async (need) => {
        const value = env[need.name];
        if (value === undefined || value === '') return [];
        const bytes = namesFile(need) ? await readNamedFile(need, value) : Buffer.from(value);
        return [[need.name, bytes.toString('base64')] as const];
      }),
    );
    return { labels: { [LABELS.tokenTier]: first.tier }, data: Object.fromEntries(data.flat()) };
  };
}

/** The value is not shown: somebody may have put what belongs into the file in its place. */
async function readNamedFile({ name, where }: EnvNeed, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new SettingsError(
      `the file that ${name} names (${where}) cannot be read (${why}): set ${name} to the path of one file`,
    );
  }
}
