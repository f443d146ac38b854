import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { PLACEHOLDER, type PrintedSecrets, printingSecrets } from '../builders/secrets.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { type GeminiServer, type ScriptedTurn, startGemini } from '../fakes/gemini/server.ts';
import { aWorld, MODEL_KEY, PROJECT, type World } from './world.ts';

const MODEL = 'gemini-3-flash';

const candidate = (fields: object): ScriptedTurn => ({ raw: { candidates: [fields] } });
const malformed = candidate({
  ...{ finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'Malformed function call: print(', index: 0 },
});
const empty = candidate({ content: { role: 'model', parts: [] }, finishReason: 'STOP' });
const look: ScriptedTurn = {
  toolCalls: [{ name: 'gitlab_get_mr_details', args: { project: PROJECT, iid: 1 } }],
};

/** By what the run asks: its answers, one after the other. */
const SCRIPTS: Readonly<Record<string, readonly ScriptedTurn[]>> = {
  'three malformed calls': [malformed, malformed, malformed],
  'empty answers between calls': [look, empty, look, empty, empty, { text: 'It is the cache.' }],
  'a blocked prompt': [{ raw: { promptFeedback: { blockReason: 'SAFETY' } } }],
  'a recitation': [candidate({ finishReason: 'RECITATION' })],
  'half an answer': [{ text: 'half', finishReason: 'MAX_TOKENS' }],
};

describe('an AgentRun whose model is Gemini', () => {
  let world: World;
  let gemini: GeminiServer;
  let printed: PrintedSecrets;
  const asked = new Map<string, number>();

  beforeAll(async () => {
    gemini = await startGemini({
      apiKey: MODEL_KEY,
      scripts: {
        [MODEL]: ({ contents }) => {
          const first = JSON.stringify(contents[0]);
          const wish = Object.keys(SCRIPTS).find((one) => first.includes(one));
          if (wish === undefined) {
            const seen = JSON.stringify(contents.at(-1));
            return contents.length > 1
              ? { text: `Seen: ${seen} and ${PLACEHOLDER}` }
              : { toolCalls: [{ name: 'sandbox_exec', args: { command: printed.command } }] };
          }
          const call = asked.get(wish) ?? 0;
          asked.set(wish, call + 1);
          return SCRIPTS[wish]?.[call] ?? { text: 'Asked too often.' };
        },
      },
    });
    world = await aWorld(await sharedCluster(), {
      scripts: { unused: () => ({ text: '' }) },
      workflowSpec: {
        model: {
          ...{ name: MODEL, provider: 'Gemini', baseURL: gemini.origin },
          apiKeySecretRef: { name: 'model-key', key: 'token' },
        },
      },
    });
    printed = printingSecrets(world.tokens.orchestrator);
    await world.operator.waitReady();
  });
  afterAll(async () => {
    await world?.close();
    await gemini?.stop();
  });

  let runs = 0;
  async function ended(message: string, spec: object = {}): Promise<AgentRun> {
    runs += 1;
    await world.startRun(`run-${runs}`, { message, ...spec });
    return world.waitEnd(`run-${runs}`);
  }
  const noteOf = ({ status }: AgentRun): string =>
    world.mergeRequest.discussions.flatMap(({ notes }) => notes).find(({ id }) => id === status?.note?.noteId)
      ?.body ?? '';
  const succeededOf = ({ status }: AgentRun) => status?.conditions?.find(({ type }) => type === 'Succeeded');
  const requestsOf = (message: string) =>
    gemini.requests.filter(({ contents }) => JSON.stringify(contents[0]).includes(message));
  const saved = async ({ metadata }: AgentRun, file: string): Promise<string> =>
    readFile(join(world.storeDir, 'sessions', metadata.uid ?? '', file), 'utf8');

  it('BR-19: ends after three malformed calls without an answer, and keeps nothing of them', async () => {
    const run = await ended('three malformed calls', { sandbox: { none: true } });
    expect(run.status?.phase).toBe('Failed');
    expect(succeededOf(run)).toMatchObject({ status: 'False', reason: 'ModelNoAnswer' });
    expect(noteOf(run)).toMatch(
      /^Hummingbird analysis failed\.\n\nReason: ModelNoAnswer\. The model gave no answer/,
    );

    const lastTurns = requestsOf('three malformed calls').map(({ contents }) => contents.at(-1));
    const nudges = lastTurns.map((turn) => /could not be read/.test(JSON.stringify(turn)));
    expect(nudges).toEqual([false, true, true]);
    expect(lastTurns.map((turn) => turn?.role)).toEqual(['user', 'user', 'user']);
    const { contents } = JSON.parse(await saved(run, 'context.json'));
    expect(contents).toEqual([{ role: 'user', content: expect.stringContaining('three malformed calls') }]);
    expect(contents[0].content).not.toContain('could not be read');
  });

  it('BR-20: survives empty answers between its calls', async () => {
    const run = await ended('empty answers between calls', { sandbox: { none: true } });
    expect(run.status).toMatchObject({ phase: 'Succeeded', iterations: 6, toolCalls: 2 });
    expect(noteOf(run)).toMatch(/^It is the cache\./);
    expect(requestsOf('empty answers between calls')).toHaveLength(6);
  });

  it.each([
    ['a', 'a blocked prompt', /SAFETY/],
    ['b', 'a recitation', /RECITATION/],
  ])('BR-21 %s: says in note and status that the model gave no answer to %s', async (_id, message, why) => {
    const run = await ended(message, { sandbox: { none: true } });
    expect(run.status?.phase).toBe('Failed');
    expect(succeededOf(run)).toMatchObject({
      status: 'False',
      reason: 'ModelNoAnswer',
      message: expect.stringMatching(why),
    });
    expect(noteOf(run)).toMatch(/Reason: ModelNoAnswer\. /);
    expect(noteOf(run)).toMatch(why);
    expect(requestsOf(message)).toHaveLength(1);
  });

  it('BR-21 c: posts half an answer, and marks it as cut', async () => {
    const run = await ended('half an answer', { sandbox: { none: true } });
    expect(run.status).toMatchObject({ phase: 'Succeeded', outcome: { reason: 'Partial' } });
    expect(noteOf(run)).toMatch(/^_This result is partial: .*\n\nhalf\n\n_The answer was cut/);
  });

  it('BR-44: shows no secret that a command prints anywhere, and leaves what only looks like one', async () => {
    const run = await ended('print what you find');
    expect(run.status).toMatchObject({ phase: 'Succeeded', toolCalls: 1 });
    const places: Record<string, string> = {
      ...(await objectsOf(run)),
      note: noteOf(run),
      'later requests': JSON.stringify(requestsOf('print what you find').slice(1)),
      'operator log': world.operator.log(),
      ...(await stored()),
    };
    const { orchestrator, action, tool, model } = world.tokens;
    const markerKey = 'ab'.repeat(32);
    for (const [place, text] of Object.entries(places)) {
      for (const secret of [orchestrator, action, tool, model, markerKey])
        for (const form of [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)])
          expect(text, place).not.toContain(form);
      for (const line of printed.keyLines) expect(text, place).not.toContain(line);
    }
    const session = `sessions/${run.metadata.uid}`;
    for (const place of ['later requests', 'note', `${session}/context.json`, `${session}/transcript.md`]) {
      expect(places[place], place).toContain(PLACEHOLDER);
      expect(places[place], place).toContain('[redacted');
    }
    // "signature" in base64: the server made it, and refuses one that comes back changed.
    for (const place of ['later requests', `${session}/context.json`])
      expect(places[place], place).toMatch(/"thoughtSignature":"c2lnbmF0dXJl/);
    expect(gemini.refusals).toEqual([]);
  });

  /** As the API server has them. */
  async function objectsOf(run: AgentRun): Promise<Record<string, string>> {
    const { agents, sandboxes } = world.namespaces;
    const text = (kind: string, namespace: string) =>
      world.kubectl(['get', kind, '-n', namespace, '-o', 'json']);
    return {
      status: JSON.stringify(run),
      sessions: await text('agentsessions', agents),
      events: await text('events', agents),
      'events of sandboxes': await text('events', sandboxes),
      workflows: await text('agentworkflows', agents),
      pools: await text('sandboxpools', sandboxes),
      pods: await text('pods', sandboxes),
    };
  }

  /** Every object of the store: checkpoints, results, sessions and the files of the sandbox. */
  async function stored(): Promise<Record<string, string>> {
    const files = await readdir(world.storeDir, { recursive: true, withFileTypes: true });
    const texts: Record<string, string> = {};
    for (const file of files) {
      if (!file.isFile()) continue;
      const path = join(file.parentPath, file.name);
      const bytes = await readFile(path);
      const text = path.endsWith('.gz') ? gunzipSync(bytes) : bytes;
      texts[path.slice(world.storeDir.length + 1)] = text.toString('latin1');
    }
    return texts;
  }
});
