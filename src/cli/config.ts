import { stringify } from 'yaml';
import { type Environment, missingLine, missingVariables } from '../settings/environment.ts';
import { clusterSecretRef, secretCommands } from '../settings/file/cluster-secrets.ts';
import { ConfigError, type Fault } from '../settings/file/faults.ts';
import { configSchemaText } from '../settings/file/json-schema.ts';
import { type ClusterNamespaces, clusterConfig } from '../settings/file/to-crs.ts';
import { type Config, loadConfig } from '../settings/file.ts';
import type { ConfigTask } from './config-command.ts';

/** 0: the file can be used; 2: it cannot, as for every wrong setting. */
export type ConfigExit = 0 | 2;

/** Does what `hummingbird config …` asks; what it finds goes to stdout. Throws SettingsError for a file that is not there. */
export async function runConfigTask(
  task: ConfigTask,
  { env, stdout }: { readonly env: Environment; readonly stdout: { write(text: string): unknown } },
): Promise<ConfigExit> {
  switch (task.kind) {
    case 'check': {
      const found = await checked(task, env);
      stdout.write(task.json ? `${JSON.stringify(found, null, 2)}\n` : inWords(found));
      return found.ok ? 0 : 2;
    }
    case 'to-crs':
      stdout.write(await asResources(task.file, task, env));
      return 0;
    case 'schema':
      stdout.write(configSchemaText());
      return 0;
    default:
      return task satisfies never;
  }
}

/** What `-o json` prints. */
interface Checked {
  readonly path: string;
  readonly ok: boolean;
  readonly faults: readonly Fault[];
  /** With --env. */
  readonly missing?: ReturnType<typeof missingVariables>;
  readonly workflows?: readonly string[];
  readonly projects?: number;
}

async function checked(task: ConfigTask & { readonly kind: 'check' }, env: Environment): Promise<Checked> {
  const path = task.file;
  let config: Config;
  try {
    config = await loadConfig(path, { env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { path, ok: false, faults: error.faults };
  }
  const missing = task.environment ? missingVariables(config.needs, env) : undefined;
  return {
    path,
    ok: missing === undefined || missing.length === 0,
    faults: [],
    ...(missing && { missing }),
    workflows: config.workflows.map(({ name }) => name),
    projects: config.projectIndex.size,
  };
}

function inWords({ path, faults, missing = [], workflows = [], projects = 0 }: Checked): string {
  if (faults.length > 0) return `${new ConfigError(path, faults).message}\n`;
  if (missing.length > 0)
    return `${path}: environment variables are not set\n${missing.map((one) => `  ${missingLine(one)}\n`).join('')}`;
  return `${path}: ${workflows.length} workflows (${workflows.join(', ')}) for ${projects} projects\n`;
}

async function asResources(path: string, to: ClusterNamespaces, env: Environment): Promise<string> {
  const config = await loadConfig(path, { env, secretRef: clusterSecretRef });
  const { objects, needs, flags } = clusterConfig(config, to);
  const header = [
    'Made by "hummingbird config to-crs". Secrets are only named here; these commands make them from the environment:',
    ...secretCommands(needs, to.namespace).map((command) => `  ${command}`),
    'What the file says of the whole process are flags of the operator:',
    ...flags.map((flag) => `  ${flag}`),
    ...(objects.some(({ kind }) => kind === 'SandboxPool')
      ? ['The SandboxPool is a skeleton: look at its image, resources and replicas.']
      : []),
  ];
  const yaml = objects.map((object) => stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 }));
  return `${header.map((line) => `# ${line}\n`).join('')}${yaml.join('---\n')}`;
}
