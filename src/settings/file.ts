import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { type Environment, type EnvNeed, validateEnv } from './environment.ts';
import { ConfigError, type Fault, faultAt, schemaFaults } from './file/faults.ts';
import { keysAt } from './file/json-schema.ts';
import { readSource, type Source } from './file/source.ts';
import { configFileSchema, type FileModel, type FileSettings } from './file-schema.ts';
import { type ConfiguredWorkflow, configuredWorkflow, type WorkflowParts } from './file-workflow.ts';
import { SettingsError } from './operator.ts';

/** The configuration file: which workflows there are, for which projects, and with what. */
export interface Config {
  readonly path: string;
  readonly settings: FileSettings;
  readonly workflows: readonly ConfiguredWorkflow[];
  /** Project path in lower case -> workflows that serve it, in the file's order. */
  readonly projectIndex: ReadonlyMap<string, readonly ConfiguredWorkflow[]>;
  /** Every variable that the file names. */
  readonly needs: readonly EnvNeed[];
}

export interface LoadOptions {
  readonly env: Environment;
  /** Takes the place of every workflow's model. */
  readonly model?: string;
  readonly secretRef?: WorkflowParts['secretRef'];
}

/** A prompt is Markdown of people; the operator's shape takes no more. */
const MAX_PROMPT_CHARS = 65_536;

/**
 * Reads and checks the file and the prompts that it names. Throws one ConfigError with everything that is wrong and
 * where, SettingsError when the file cannot be read.
 */
export async function loadConfig(path: string, options: LoadOptions): Promise<Config> {
  const source = readSource(await readText(path));
  if (source.value === undefined && source.faults.length > 0) throw new ConfigError(path, source.faults);
  const parsed = configFileSchema.safeParse(source.value);
  if (!parsed.success)
    throw new ConfigError(path, [
      ...source.faults,
      ...schemaFaults(source, parsed.error.issues, keysAt),
      ...(await promptFaults(path, source)),
    ]);
  const { settings, workflows: described } = parsed.data;

  const faults: Fault[] = [...source.faults];
  const workflows: ConfiguredWorkflow[] = [];
  for (const [name, file] of Object.entries(described)) {
    const at = ['workflows', name];
    const model =
      options.model === undefined ? file.model : overridden(file.model ?? settings.model, options.model);
    const modelFault = modelProblem(model ?? settings.model);
    if (modelFault !== undefined)
      faults.push(
        faultAt(source, file.model === undefined ? ['settings', 'model'] : [...at, 'model'], modelFault),
      );
    const prompt = await promptOf(path, name, file.prompt);
    if ('problem' in prompt) {
      faults.push(faultAt(source, [...at, 'prompt'], prompt.problem));
      continue;
    }
    const parts = {
      settings,
      prompt: prompt.prompt,
      env: options.env,
      secretRef: options.secretRef,
      file: model === undefined ? file : { ...file, model },
    };
    try {
      workflows.push(configuredWorkflow(name, parts));
    } catch (error) {
      if (!(error instanceof z.ZodError)) throw error;
      // In the operator's words: the schemas should agree, and where they do not, this says on what.
      for (const { path: field, message } of error.issues)
        faults.push(faultAt(source, at, `the operator's spec.${field.map(String).join('.')} ${message}`));
    }
  }
  if (faults.length > 0) throw new ConfigError(path, faults);
  const needs = workflows.flatMap((workflow) => workflow.needs);
  return { path, settings, workflows, projectIndex: indexOf(workflows), needs };
}

/** As `loadConfig`, and every variable that the file names must be set: for processes that serve all of it. */
export async function loadServedConfig(path: string, options: LoadOptions): Promise<Config> {
  const config = await loadConfig(path, options);
  validateEnv(config.needs, options.env);
  return config;
}

/** GitLab's paths are case-insensitive. */
export const workflowsOf = (config: Config, project: string): readonly ConfiguredWorkflow[] =>
  config.projectIndex.get(project.toLowerCase()) ?? [];

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new SettingsError(
      `configuration ${path} cannot be read (${why}): name the file with --config or CONFIG_PATH`,
      { cause: error },
    );
  }
}

/** Of a file that is wrong elsewhere too: prompts that are missing are told in the same message. */
async function promptFaults(path: string, source: Source): Promise<readonly Fault[]> {
  const Prompts = z.object({ workflows: z.record(z.string(), z.looseObject({ prompt: z.unknown() })) });
  const parsed = Prompts.safeParse(source.value);
  const named = Object.entries(parsed.data?.workflows ?? {}).map(async ([name, { prompt }]) => {
    if (typeof prompt !== 'string' || prompt === '') return [];
    const found = await promptOf(path, name, prompt);
    return 'problem' in found ? [faultAt(source, ['workflows', name, 'prompt'], found.problem)] : [];
  });
  return (await Promise.all(named)).flat();
}

async function promptOf(
  path: string,
  name: string,
  prompt: string | undefined,
): Promise<{ readonly prompt: AgentWorkflow['spec']['prompt'] } | { readonly problem: string }> {
  // Without a file it is the prompt of that name which comes with the program.
  if (prompt === undefined) return { prompt: { builtin: name } };
  const file = resolve(dirname(path), prompt);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return { problem: `${file} cannot be read (${why}); the path is relative to the configuration` };
  }
  if (text.trim() === '') return { problem: `${file} is empty; write the prompt into it` };
  if (text.length > MAX_PROMPT_CHARS)
    return { problem: `${file} has ${text.length} characters; make it at most ${MAX_PROMPT_CHARS}` };
  return { prompt: { text } };
}

/** Another model of the same endpoint, or one whose name tells where it is. */
function overridden(model: FileModel, name: string): FileModel {
  return /^(gemini|claude)/.test(name) && model.base_url === undefined ? { name } : { ...model, name };
}

function modelProblem({ name, provider, base_url: baseUrl }: FileModel): string | undefined {
  const known = /^(gemini|claude)/.test(name);
  if (baseUrl === undefined && (provider === 'OpenAICompatible' || (provider === undefined && !known)))
    return `the model ${name} needs base_url, the address of its OpenAI-compatible endpoint up to and with /v1`;
  return undefined;
}

function indexOf(workflows: readonly ConfiguredWorkflow[]): Config['projectIndex'] {
  const index = new Map<string, ConfiguredWorkflow[]>();
  for (const workflow of workflows) {
    for (const { path } of workflow.workflow.spec.projects) {
      const key = path.toLowerCase();
      index.set(key, [...(index.get(key) ?? []), workflow]);
    }
  }
  return index;
}
