import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLACEHOLDER, type PrintedSecrets, printingSecrets } from '../builders/secrets.ts';
import { type GeminiServer, startGemini } from '../fakes/gemini/server.ts';
import { aCliWorld, type CliWorld, type Ended, PROJECT } from './world.ts';

const MODEL = 'gemini-3-flash';
const API_KEY = 'gemini-key-canary-0001';

describe.each([
  ['inline', ''],
  ['in the previews of a large output', 'head -c 9000 /dev/zero | tr "\\0" x; echo;'],
])('secrets that a command prints %s', (_where, filler) => {
  let world: CliWorld;
  let gemini: GeminiServer;
  let ended: Ended;
  let printed: PrintedSecrets;
  let files: { context: string; transcript: string };

  beforeAll(async () => {
    world = await aCliWorld({ unused: () => ({ text: '' }) });
    printed = printingSecrets(world.tokens.orchestrator, filler);
    gemini = await startGemini({
      apiKey: API_KEY,
      scripts: {
        [MODEL]: ({ contents }) =>
          contents.length > 1
            ? { text: `Seen: ${JSON.stringify(contents.at(-1))} and ${PLACEHOLDER}` }
            : { toolCalls: [{ name: 'sandbox_exec', args: { command: printed.command } }] },
      },
    });
    await world.configure(
      { model: { name: MODEL, provider: 'Gemini', base_url: gemini.origin, api_key_env: 'GEMINI_KEY' } },
      {},
    );
    const folder = world.path('session');
    const args = ['--event', JSON.stringify({ project: PROJECT, iid: 1 }), '--save-session', folder];
    ended = await world.run([...args, '--publish', 'note', '-o', 'json'], {
      GEMINI_KEY: API_KEY,
      ORCHESTRATOR_GITLAB_TOKEN: world.tokens.orchestrator,
      HUMMINGBIRD_MARKER_KEYS: `k1:${'ab'.repeat(16)}`,
    });
    files = {
      context: await readFile(`${folder}/context.json`, 'utf8'),
      transcript: await readFile(`${folder}/transcript.md`, 'utf8'),
    };
  });
  afterAll(async () => {
    await gemini?.stop();
    await world?.close();
  });

  const places = () => ({
    'later requests': JSON.stringify(gemini.requests),
    'context.json': files.context,
    'transcript.md': files.transcript,
    note: world.mergeRequest.discussions.flatMap(({ notes }) => notes.map(({ body }) => body)).join('\n'),
    stdout: ended.stdout,
    stderr: ended.stderr,
  });

  it('are in no request, session, transcript, note or log (BR-44)', () => {
    expect(ended).toMatchObject({ code: 0 });
    const { orchestrator, tool, action } = world.tokens;
    for (const [place, text] of Object.entries(places())) {
      for (const secret of [orchestrator, tool, action, API_KEY]) expect(text, place).not.toContain(secret);
      for (const line of printed.keyLines) expect(text, place).not.toContain(line);
    }
    expect(places()['later requests']).toContain('[redacted]');
    expect(places()['later requests']).toContain('[redacted private key]');
  });

  it('and what only looks like one stays: a placeholder, and the signature of a thought (BR-44)', () => {
    for (const place of ['later requests', 'context.json', 'transcript.md', 'note', 'stdout'] as const)
      expect(places()[place], place).toContain(PLACEHOLDER);
    // The server made it, and refuses one that comes back changed.
    const signature = Buffer.from('signature 1').toString('base64');
    expect(places()['later requests']).toContain(signature);
    expect(files.context).toContain(signature);
    expect(gemini.refusals).toEqual([]);
  });
});
