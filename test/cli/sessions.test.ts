import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../hack/cluster/run.ts';
import type { ChatRequestBody } from '../fakes/openai/check.ts';
import type { Script } from '../fakes/openai/server.ts';
import { aCliWorld, type CliWorld, PROJECT } from './world.ts';

const EVENT = JSON.stringify({ project: PROJECT, iid: 1 });
const READ = 'cat /tmp/data/notes.txt';

/** As the first version kept a conversation: Gemini's contents, no version around them. */
const LEGACY = [
  { role: 'user', parts: [{ text: '{"iid":1}' }] },
  {
    role: 'model',
    parts: [
      { functionCall: { name: 'sandbox_exec', args: { command: READ } }, thoughtSignature: 'c2lnLTE=' },
    ],
  },
  {
    role: 'user',
    parts: [{ functionResponse: { name: 'sandbox_exec', response: { exit_code: 0, stdout: 'old words' } } }],
  },
  { role: 'model', parts: [{ text: 'It was the **cache**.' }] },
];

describe('a session', () => {
  let world: CliWorld;
  /** The model keeps its answer to "slowly" back until this resolves. */
  const gate = Promise.withResolvers<void>();
  const script: Script = async ({ messages }) => {
    const last = messages.at(-1);
    if (String(last?.content).includes('slowly')) await gate.promise;
    if (last?.role === 'tool') return { text: `Seen: ${String(last.content)}` };
    return { toolCalls: [{ name: 'sandbox_exec', args: { command: READ } }] };
  };

  beforeAll(async () => {
    world = await aCliWorld({ 'test-script': script });
  });
  afterAll(async () => {
    gate.resolve();
    await world?.close();
  });

  const context = async (folder: string) => JSON.parse(await readFile(`${folder}/context.json`, 'utf8'));
  const lastRequest = (): ChatRequestBody => world.openai.requests.at(-1) ?? fail();

  async function legacy(name: string, form: unknown): Promise<string> {
    const folder = world.path(name);
    const data = world.path(`${name}-files/data`);
    await Promise.all([mkdir(folder), mkdir(data, { recursive: true })]);
    await writeFile(`${folder}/context.json`, JSON.stringify(form));
    await writeFile(`${data}/notes.txt`, 'kept since then');
    await run(['tar', 'czf', `${folder}/sandbox.tar.gz`, '-C', world.path(`${name}-files`), 'data']);
    return folder;
  }

  it.each([
    ['a list', LEGACY],
    ['an object', { contents: LEGACY }],
  ])('of the first version, %s in Gemini’s form, is gone on with by another provider', async (what, form) => {
    const folder = await legacy(what.replace(' ', '-'), form);
    const reply = ['--resume', folder, '--message', 'Why?'];
    const { code, stdout } = await world.run([...reply, '--event', EVENT]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('kept since then') });

    const [system, , call, result, answer, question] = lastRequest().messages;
    expect(String(system?.content)).toContain('This is a follow-up');
    const id = call?.role === 'assistant' ? call.tool_calls?.[0]?.id : undefined;
    expect(id).toMatch(/./);
    expect(call).toMatchObject({
      tool_calls: [{ function: { arguments: JSON.stringify({ command: READ }) } }],
    });
    expect(result).toMatchObject({ role: 'tool', tool_call_id: id });
    expect(String(result?.content)).toContain('old words');
    expect(answer).toMatchObject({ role: 'assistant', content: 'It was the **cache**.' });
    expect(question).toEqual({ role: 'user', content: 'Why?' });
    expect(world.openai.refusals).toEqual([]);

    // From now on it is as all others are, and knows its merge request.
    expect(await context(folder)).toMatchObject({
      ...{ format_version: 1, project: PROJECT, iid: 1, workflow: 'analyze-failures' },
      contents: expect.arrayContaining([{ role: 'user', content: 'Why?' }]),
    });
    const again = await world.run(reply);
    expect(again.code).toBe(0);
  });

  it('of the first version does not say what it was about: that is asked for', async () => {
    const folder = await legacy('unknown', LEGACY);
    const { code, stderr } = await world.run(['--resume', folder, '--message', 'Why?']);
    expect(code).toBe(2);
    expect(stderr).toContain('saved without its merge request: give --event or --event-file');
  });

  it.each([
    ['no JSON', '{', /context\.json is not JSON/],
    ['a later version', '{"format_version": 2}', /format 2 .*this one reads 1/],
    ['something else', '{"format_version": 1}', /cannot be read: session_id/],
    ['somebody else’s list', '[1]', /not in Gemini's form/],
  ])('that holds %s is refused in a sentence', async (_what, text, message) => {
    const folder = world.path('broken');
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/context.json`, text);
    const { code, stderr } = await world.run(['--resume', folder, '--message', 'Why?', '--event', EVENT]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    await rm(folder, { recursive: true });
  });

  it('that is gone on with is followed to its new end, whenever the following began', async () => {
    const folder = world.path('followed');
    await world.run(['--event', EVENT, '--save-session', folder]);
    const running = world.start(['run', '--resume', folder, '--message', 'And now slowly']);
    const transcript = () => readFile(`${folder}/transcript.md`, 'utf8');
    await expect.poll(transcript, { timeout: 60_000 }).toContain('And now slowly');
    const following = world.start(['transcript', folder, '--follow']);
    // It has read the transcript by then, and has not taken what was there for the end.
    await following.prints(/And now slowly/);
    gate.resolve();
    expect((await running.ended).code).toBe(0);
    const { code, stdout } = await following.ended;
    expect(code).toBe(0);
    expect(stdout).toBe(await transcript());
    expect(stdout.match(/^# /gm)).toHaveLength(2);
  });
});

function fail(): never {
  throw new Error('the model was asked');
}
