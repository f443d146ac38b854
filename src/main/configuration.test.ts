import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readConfiguration } from './configuration.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'configuration-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const namespaces = { namespace: 'agents', sandboxNamespace: 'sandboxes' };
const env = { GOOGLE_API_KEY: 'sk-not-to-be-read' };
const read = () => readConfiguration(join(folder, 'hummingbird.yaml'), env, namespaces);
const text = (iterations: number) => `settings: {max_iterations: ${iterations}}
workflows:
  review:
    prompt: review.md
    projects: {group/app: {action_tokens: {gitlab: BOT}}}
`;

/** As the kubelet writes a ConfigMap: links to links to a folder of this state, which one rename replaces. */
async function publish(state: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(join(folder, state));
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, state, name), content);
    await symlink(join('..data', name), join(folder, name)).catch(() => undefined);
  }
  await symlink(state, join(folder, 'next'));
  await rename(join(folder, 'next'), join(folder, '..data'));
}

it('a file in a ConfigMap is read as workflows of the operator, and anew after the kubelet has replaced it', async () => {
  await publish('one', { 'hummingbird.yaml': text(7), 'review.md': 'Look.' });
  const first = await read();
  expect(first).toMatchObject({
    kind: 'Good',
    workflows: [
      {
        metadata: { name: 'review', namespace: 'agents' },
        spec: {
          prompt: { text: 'Look.' },
          limits: { maxIterations: 7 },
          projects: [{ path: 'group/app', actionTokenSecretRef: { name: 'action-bot', key: 'token' } }],
        },
      },
    ],
  });
  expect(JSON.stringify(first)).not.toContain(env.GOOGLE_API_KEY);
  await publish('two', { 'hummingbird.yaml': text(9), 'review.md': 'Look again.' });
  expect(await read()).toMatchObject({
    workflows: [{ spec: { prompt: { text: 'Look again.' }, limits: { maxIterations: 9 } } }],
  });
});

it('everything that is wrong with the file is told at once, each fault with its place', async () => {
  await publish('one', { 'hummingbird.yaml': `${text(0)}more: true\n` });
  const file = join(folder, 'hummingbird.yaml');
  expect(await read()).toEqual({
    kind: 'Faulty',
    faults: [
      expect.stringMatching(`^${file}:1:28: settings.max_iterations: `),
      expect.stringMatching(`^${file}:4:13: workflows.review.prompt: .*cannot be read`),
      expect.stringMatching(`^${file}:6:1: `),
    ],
  });
});

it('a file that is not there, or that the operator could not work with, is faulty too', async () => {
  expect(await read()).toMatchObject({ kind: 'Faulty', faults: [expect.stringContaining('cannot be read')] });
  const withoutToken = text(7).replace('{action_tokens: {gitlab: BOT}}', '{}');
  await publish('one', { 'hummingbird.yaml': withoutToken, 'review.md': 'Look.' });
  expect(await read()).toMatchObject({
    kind: 'Faulty',
    faults: [expect.stringContaining('add action_tokens.gitlab')],
  });
});
