import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EvalSettings } from '../cli/eval-command.ts';
import { evaluate } from './eval.ts';

const SETTINGS: EvalSettings = {
  models: [],
  baseUrl: undefined,
  apiKeyEnv: undefined,
  effort: undefined,
  cases: [],
  without: [],
  ablations: false,
  episodes: 0,
  seed: 1,
  record: undefined,
  replay: undefined,
  json: undefined,
};

async function evaluated(over: Partial<EvalSettings>, env: Readonly<Record<string, string>> = {}) {
  let out = '';
  let log = '';
  const code = await evaluate(
    { ...SETTINGS, ...over },
    {
      env,
      stdout: { write: (text) => (out += text) },
      stderr: { write: (text) => (log += text) },
      interrupt: new AbortController().signal,
    },
  );
  return { code, out, log };
}

describe('hummingbird eval', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hummingbird-eval-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('gives the perfect model full marks, in a table and as JSON', async () => {
    const json = join(folder, 'report.json');
    const { code, out, log } = await evaluated({ models: ['scripted:perfect'], json });
    expect(code).toBe(0);
    const { models } = JSON.parse(await readFile(json, 'utf8'));
    const { cases, full, classified, unsafe } = models[0].totals;
    expect(cases).toBeGreaterThanOrEqual(55);
    expect([full, classified, unsafe]).toEqual([cases, cases, 0]);
    expect(out).toMatch(new RegExp(`scripted:perfect +${cases}/${cases} +${cases}/${cases} +0 `));
    expect(log).toContain('pass   triage');
  });

  it('exits with 1 when something is UNSAFE', async () => {
    const adversary = { models: ['scripted:adversary'], cases: ['triage/'], episodes: 30 };
    expect((await evaluated(adversary)).code).toBe(0);
    const { code, out } = await evaluated({ ...adversary, without: ['direction'] });
    expect(code).toBe(1);
    expect(out).toMatch(/UNSAFE episode-\d+: /);
  });

  it('prints what each lever catches', async () => {
    const { code, out } = await evaluated({ ablations: true, cases: ['values/'] });
    expect(code).toBe(0);
    expect(out).toContain('7 vacancies');
  });

  it.each<[string, Partial<EvalSettings>, RegExp]>([
    ['no model', {}, /name a --model/],
    ['a scripted model that does not exist', { models: ['scripted:lazy'] }, /there is no scripted:lazy/],
    ['no case', { models: ['scripted:perfect'], cases: ['nowhere'] }, /no case of evals\/cases has nowhere/],
    ['both ways at once', { models: ['m'], record: 'a', replay: 'b' }, /one of --record and --replay/],
    ['a recording of two models', { models: ['m', 'n'], record: 'a' }, /exactly one model/],
    ['a key that is empty', { models: ['m'], apiKeyEnv: 'NO_KEY' }, /NO_KEY is empty/],
  ])('says what is wrong with %s', async (_, over, message) => {
    await expect(evaluated(over)).rejects.toThrow(message);
  });

  it('measures a model behind an endpoint, and replays its answers without it', async () => {
    const asked: string[] = [];
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      asked.push(`${request.headers.authorization} ${body}`);
      const verdict = {
        classification: 'no_action',
        summary: 'It may go',
        reasoning: 'The image moves to 1.8.3.',
        edits: [],
        escalationReason: '',
      };
      const message = { role: 'assistant', content: JSON.stringify(verdict) };
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage: { prompt_tokens: 900, completion_tokens: 40, total_tokens: 940 },
        }),
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const record = join(folder, 'answers.json');
    const one = { models: ['tiny'], cases: ['explain/routine-patch'] };
    const measured = await evaluated(
      { ...one, baseUrl: `http://127.0.0.1:${port}/v1`, apiKeyEnv: 'KEY', effort: 'low', record },
      { KEY: 'secret-key' },
    );
    server.close();
    server.closeAllConnections();
    expect(measured.code).toBe(0);
    expect(measured.out).toMatch(/tiny +1\/1 +1\/1 +0 .* 900\/40/);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatch(/^Bearer secret-key .*"reasoning_effort":"low"/);
    expect(await readFile(record, 'utf8')).not.toContain('secret-key');

    const replayed = await evaluated({ ...one, replay: record });
    expect(replayed.out).toMatch(/tiny +1\/1 +1\/1 +0 .* 900\/40/);
    // Another prompt is another question, and is not answered by old words.
    await expect(evaluated({ ...one, replay: record, without: ['fieldsByReader'] })).rejects.toThrow(
      /record again/,
    );
  });
});
