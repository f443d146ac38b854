import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { firstMessage } from '../controllers/run/loop-report.ts';
import { createHttpClient } from '../http/client.ts';
import { type Sandbox, SCRATCH } from '../sandbox/port.ts';
import { toolToken } from '../settings/tokens.ts';
import { gitlabTools } from '../sources/gitlab/tools.ts';
import { LOOP_PROMPTS, LOOP_PROMPTS_FOLDER } from './loop-prompts.ts';
import { BUILTIN_PROMPTS, type BuiltinPrompt, loadBuiltinPrompt } from './prompt-files.ts';
import { BASE_SYSTEM_PROMPT, CONTINUATION_PROMPT, SANDBOX_PROMPT } from './prompts.ts';
import { createRegistry } from './tools/registry.ts';

// Nothing is called: only the definitions are looked at.
const noSandbox = {} as Sandbox;
const source = { http: createHttpClient(), baseUrl: 'http://127.0.0.1:9', token: toolToken('unused') };
const registry = createRegistry({
  tools: gitlabTools(source, { project: 'group/app', iid: 1, sha: 'a'.repeat(40) }),
  sandbox: noSandbox,
});
const tools = registry.definitions().map(({ name }) => name);
const parameters = new Set(registry.definitions().flatMap((tool) => propertyNames(tool.parameters)));
const event = Object.keys(
  JSON.parse(
    firstMessage({
      spec: {
        workflowRef: { name: 'w' },
        mergeRequest: { project: 'group/app', iid: 1 },
        trigger: { kind: 'Manual' },
        message: 'look',
        publish: { kind: 'Note' },
        cancel: false,
      },
      status: { sha: 'a'.repeat(40) },
    }),
  ),
);
/** Fields of results, as the tools' own notes teach them. */
const fields = wordsOf(registry.notes()).flatMap((word) => word.match(/\w+/g) ?? []);
/** Fields that the registry adds to results. */
const spillFields = ['saved_to', 'stdout_file', 'stderr_file'];
/** In the sandbox image. */
const programs = ['sh', 'jq', 'yq', 'python3', 'grep', 'tar', 'gzip', 'head', 'tail', 'sed'];
const statuses = ['failed', 'success', 'canceled', 'running', 'pending'];

/** Words of a prompt that mean something in its own answer only. */
const OWN_WORDS: Readonly<Record<BuiltinPrompt, readonly string[]>> = {
  'analyze-failures': [],
  'code-review': ['path/of/file.ext'],
  'renovate-babysit': ['merge', 'retry', 'wait', 'adapt', 'decide'],
};

const GITLAB = [
  'gitlab_get_mr_details',
  'gitlab_get_mr_diff',
  'gitlab_get_commit_statuses',
  'gitlab_get_job_log',
];
const TAUGHT: Readonly<Record<BuiltinPrompt, readonly string[]>> = {
  'analyze-failures': [
    ...GITLAB,
    ...['sandbox_exec', 'fetch_batch_to_sandbox', 'target_url', 'allow_failure', 'status', 'tail', 'jq'],
  ],
  'code-review': [
    ...GITLAB,
    ...['gitlab_get_mr_discussions', 'gitlab_get_file_at_ref', 'gitlab_get_repo_archive', 'ref', 'tar'],
    ...['sandbox_exec', 'saved_to', 'complete', 'diff_omitted', 'job_id', 'jq', 'grep'],
  ],
  'renovate-babysit': [...GITLAB, 'sandbox_exec', 'saved_to', 'target_url', 'job_id', 'jq', 'grep'],
};

describe.each(BUILTIN_PROMPTS)('the built-in prompt %s', (name) => {
  const text = readFileSync(new URL(`../../prompts/workflows/${name}.md`, import.meta.url), 'utf8');

  it('is what is loaded, word for word', async () => {
    expect(await loadBuiltinPrompt(name)).toBe(text);
  });

  it('names no tool, parameter, field, program or file that does not exist', () => {
    const known = new Set([
      ...[...tools, ...parameters, ...event, ...fields, ...spillFields, ...programs, ...statuses],
      ...OWN_WORDS[name],
    ]);
    expect(wordsOf(text).filter((word) => !known.has(word) && !isCommand(word))).toEqual([]);
  });

  it('teaches the event and what it needs of the tools', () => {
    const words = wordsOf(text).map((word) => word.split(' ')[0]);
    for (const word of ['project', 'iid', 'sha', 'request', ...TAUGHT[name]]) expect(words).toContain(word);
  });

  it('has no word of sources that a workflow may not declare: their notes teach them', () => {
    expect(text).not.toMatch(/konflux|pipelinerun|taskrun|testing farm|\btf_/i);
  });

  it('says what is in scope, what to answer, and what to do when data is missing', () => {
    const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual(['Scope', 'Input', 'Data', 'Analysis', 'Answer', 'When something is missing']);
  });
});

describe('the loop’s own prompts', () => {
  it('are files, each of which is used', () => {
    const files = readdirSync(LOOP_PROMPTS_FOLDER).map((file) => file.replace(/\.md$/, ''));
    expect(files.toSorted()).toEqual(Object.keys(LOOP_PROMPTS).toSorted());
  });

  it.each(Object.entries(LOOP_PROMPTS))(
    'have places for the values that they are given: %s',
    (name, values) => {
      const text = readFileSync(new URL(`${name}.md`, LOOP_PROMPTS_FOLDER), 'utf8');
      const places = [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, place]) => place);
      expect([...new Set(places)].toSorted()).toEqual([...values].toSorted());
    },
  );

  it('name nothing that does not exist', () => {
    const known = new Set([...tools, ...spillFields, ...programs]);
    for (const text of [BASE_SYSTEM_PROMPT, SANDBOX_PROMPT, CONTINUATION_PROMPT])
      expect(wordsOf(text).filter((word) => !known.has(word) && !isCommand(word))).toEqual([]);
  });
});

test('every tool is taught somewhere', () => {
  const taught = new Set([...Object.values(TAUGHT).flat(), ...wordsOf(SANDBOX_PROMPT)]);
  expect(tools.filter((tool) => !taught.has(tool))).toEqual([]);
});

/** What stands in backticks, outside code blocks and their like. */
function wordsOf(text: string): readonly string[] {
  const prose = text.replace(/^ {4}.*$/gm, '');
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);
}

/** A program of the sandbox with its arguments, or a place below its work directory. */
function isCommand(word: string): boolean {
  const [program = '', ...rest] = word.split(' ');
  if (word === SCRATCH || word.startsWith(`${SCRATCH}/`)) return true;
  return rest.length > 0 && programs.includes(program);
}

function propertyNames(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => [
    ...(key === 'properties' && typeof value === 'object' && value !== null ? Object.keys(value) : []),
    ...propertyNames(value),
  ]);
}
