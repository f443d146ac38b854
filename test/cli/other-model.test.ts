import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GeminiServer, startGemini } from '../fakes/gemini/server.ts';
import type { Script } from '../fakes/openai/server.ts';
import { aCliWorld, type CliWorld, PROJECT } from './world.ts';

const GEMINI = 'gemini-3-flash';
const exec = (command: string) => ({ toolCalls: [{ name: 'sandbox_exec', args: { command } }] });

const openai: Script = ({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? { text: `The other model saw ${String(messages.at(-1)?.content)}` }
    : exec('cat /tmp/data/notes.txt; echo second >> /tmp/data/notes.txt');

describe('a conversation', () => {
  let world: CliWorld;
  let gemini: GeminiServer;
  beforeAll(async () => {
    gemini = await startGemini({
      apiKey: 'gemini-key-0001',
      scripts: {
        [GEMINI]: ({ contents }) => {
          const said = JSON.stringify(contents.at(-1));
          if (said.includes('functionResponse')) return { text: `Gemini saw ${said}` };
          return contents.length > 1
            ? exec('cat /tmp/data/notes.txt')
            : exec('echo first > /tmp/data/notes.txt');
        },
      },
    });
    world = await aCliWorld({ 'test-script': openai });
  });
  afterAll(async () => {
    await gemini?.stop();
    await world?.close();
  });

  it('that one provider began goes on with another, and then with the first again', async () => {
    const env = { GEMINI_KEY: 'gemini-key-0001' };
    const onGemini = { name: GEMINI, provider: 'Gemini', base_url: gemini.origin, api_key_env: 'GEMINI_KEY' };
    const folder = world.path('session');
    const context = async () => JSON.parse(await readFile(`${folder}/context.json`, 'utf8'));

    await world.configure({ model: onGemini });
    const event = JSON.stringify({ project: PROJECT, iid: 1 });
    const first = await world.run(['--event', event, '--save-session', folder], env);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('Gemini saw') });
    const { session_id: id, provider } = await context();

    await world.configure();
    const second = await world.run(['--resume', folder, '--message', 'and you?'], env);
    expect(second).toMatchObject({ code: 0, stdout: expect.stringContaining('first') });
    expect(await context()).toMatchObject({ session_id: id, model: 'test-script' });
    expect((await context()).provider).not.toBe(provider);

    await world.configure({ model: onGemini });
    const third = await world.run(['--resume', folder, '--message', 'and now?'], env);
    expect(third).toMatchObject({ code: 0, stdout: expect.stringContaining('second') });
    expect(await context()).toMatchObject({ session_id: id, model: GEMINI, provider });
    // Both servers refuse a history that their APIs would refuse, changed signatures among it.
    expect([...gemini.refusals, ...world.openai.refusals]).toEqual([]);
    expect(world.leftovers()).toEqual([]);
  });
});
