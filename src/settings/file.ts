import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { type Environment, type EnvNeed, validateEnv } from './environment.ts';
import { configFileSchema, type FileModel, type FileSettings, type FileWorkflow } from './file-schema.ts';
import { type ConfiguredWorkflow, configuredWorkflow } from './file-workflow.ts';
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
}

/** A prompt is Markdown of people; the operator's shape takes no more. */
const MAX_PROMPT_CHARS = 65_536;

/** Reads and checks the file and the prompts that it names. Throws one SettingsError with everything that is wrong. */
export async function loadConfig(path: string, options: LoadOptions): Promise<Config> {
  const parsed = configFileSchema.safeParse(parseYaml(path, await readText(path)));
  if (!parsed.success) throw faults(path, parsed.error.issues.flatMap(describeIssue));
  const { settings, workflows: described } = parsed.data;

  const problems: string[] = [];
  const workflows: ConfiguredWorkflow[] = [];
  for (const [name, file] of Object.entries(described)) {
    try {
      const prompt = await promptOf(path, name, file);
      const model =
        options.model === undefined ? file.model : overridden(file.model ?? settings.model, options.model);
      const parts = {
        settings,
        prompt,
        env: options.env,
        file: model === undefined ? file : { ...file, model },
      };
      checkModel(name, model ?? settings.model);
      workflows.push(configuredWorkflow(name, parts));
    } catch (error) {
      problems.push(
        error instanceof z.ZodError
          ? `workflows.${name}: ${error.issues.flatMap(describeIssue).join('; ')}`
          : error instanceof Error
            ? error.message
            : String(error),
      );
    }
  }
  if (problems.length > 0) throw faults(path, problems);
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

function parseYaml(path: string, text: string): unknown {
  const document = parseDocument(text, { prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined)
    throw new SettingsError(`configuration ${path} is not YAML: ${error.message.split('\n')[0] ?? ''}`);
  return document.toJS({ maxAliasCount: 100 });
}

async function promptOf(
  path: string,
  name: string,
  { prompt }: FileWorkflow,
): Promise<AgentWorkflow['spec']['prompt']> {
  // Without a file it is the prompt of that name which comes with the program.
  if (prompt === undefined) return { builtin: name };
  const file = resolve(dirname(path), prompt);
  const where = `workflows.${name}.prompt: ${file}`;
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new SettingsError(`${where} cannot be read (${why}); the path is relative to the configuration`);
  }
  if (text.trim() === '') throw new SettingsError(`${where} is empty`);
  if (text.length > MAX_PROMPT_CHARS)
    throw new SettingsError(`${where} has ${text.length} characters, at most ${MAX_PROMPT_CHARS} are used`);
  return { text };
}

/** Another model of the same endpoint, or one whose name tells where it is. */
function overridden(model: FileModel, name: string): FileModel {
  return /^(gemini|claude)/.test(name) && model.base_url === undefined ? { name } : { ...model, name };
}

function checkModel(workflow: string, { name, provider, base_url: baseUrl }: FileModel): void {
  const known = /^(gemini|claude)/.test(name);
  if (baseUrl === undefined && (provider === 'OpenAICompatible' || (provider === undefined && !known)))
    throw new SettingsError(
      `workflows.${workflow}: the model ${name} needs base_url, the address of its OpenAI-compatible endpoint up to and with /v1`,
    );
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

/** One line for each fault, with its place: `workflows.review.projects.group/app.tokens.gitlab: …`. */
function describeIssue(issue: z.core.$ZodIssue): readonly string[] {
  const where = issue.path.map(String).join('.') || '(top level)';
  if (issue.code === 'invalid_key') return [`${where}: ${issue.issues.at(-1)?.message ?? issue.message}`];
  if (issue.code === 'unrecognized_keys')
    return [`${where}: there is no key ${issue.keys.map((key) => JSON.stringify(key)).join(', ')} here`];
  return [`${where}: ${issue.message}`];
}

function faults(path: string, lines: readonly string[]): SettingsError {
  return new SettingsError(`configuration ${path}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
}
