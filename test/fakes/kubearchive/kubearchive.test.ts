import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type FakeKubeArchive, startKubeArchive } from './server.ts';

const LIST = '/apis/tekton.dev/v1/namespaces/team/pipelineruns';

const List = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string() }) })),
  metadata: z.object({ continue: z.string() }),
});

let archive: FakeKubeArchive;
beforeAll(async () => {
  archive = await startKubeArchive();
  archive.state.grant('t', 'team');
  for (let index = 0; index < 5; index += 1)
    archive.state.keep({
      apiVersion: 'tekton.dev/v1',
      kind: 'PipelineRun',
      metadata: {
        name: `run-${index}`,
        namespace: 'team',
        uid: `uid-${index}`,
        creationTimestamp: `2026-11-30T08:0${index % 2}:00Z`,
        labels: { commit: index < 4 ? 'a' : 'b' },
      },
    });
  archive.state.keepLog('team', 'pod', 'one', 'first');
});
afterAll(() => archive.stop());

const get = (path: string, headers: Record<string, string> = { authorization: 'Bearer t' }) =>
  fetch(`${archive.url}${path}`, { headers: { 'accept-encoding': 'identity', ...headers } });
const names = async (path: string) => {
  const { items, metadata } = List.parse(await (await get(path)).json());
  return { names: items.map((item) => item.metadata.name), token: metadata.continue };
};

describe('the stand-in for KubeArchive', () => {
  it.each([
    [400, {}],
    [400, { authorization: 't' }],
    [401, { authorization: 'Bearer other' }],
  ])('answers %i to %j', async (status, headers) => {
    expect((await get(LIST, headers)).status).toBe(status);
  });

  it.each([
    [403, LIST.replace('team', 'other')],
    [400, `${LIST}?limit=1001`],
    [400, `${LIST}?limit=many`],
    [400, `${LIST}?continue=%25`],
    [400, `${LIST}?labelSelector=a%20in%20(b)`],
    [404, `${LIST}/none`],
    [404, '/api/v1/namespaces/team/pods/pod/log?container=two'],
  ])('answers %i to %s', async (status, path) => {
    const answer = await get(path);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toEqual({ message: expect.any(String) });
  });

  it('gives the newest first, page by page, and everything without a selector', async () => {
    const first = await names(`${LIST}?limit=3`);
    expect(first.names).toEqual(['run-3', 'run-1', 'run-4']);
    const second = await names(`${LIST}?limit=3&continue=${encodeURIComponent(first.token)}`);
    expect(second).toEqual({ names: ['run-2', 'run-0'], token: '' });
    expect((await names(`${LIST}?labelSelector=commit%3Da`)).names).toHaveLength(4);
  });

  it('can end with a token for an empty page, as it once did', async () => {
    archive.endsWithToken = true;
    const { token } = await names(LIST);
    expect(token).not.toBe('');
    expect(await names(`${LIST}?continue=${encodeURIComponent(token)}`)).toEqual({ names: [], token: '' });
    archive.endsWithToken = false;
  });

  it('compresses for whoever takes it', async () => {
    const { request } = await import('undici');
    const { body, headers } = await request(`${archive.url}${LIST}`, {
      headers: { authorization: 'Bearer t', 'accept-encoding': 'gzip' },
    });
    expect(headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(await body.bytes()).toString()).items).toHaveLength(5);
  });

  it('breaks off on demand, after what it has sent', async () => {
    archive.faults.breakOffAfter = () => 2;
    const answer = await get(LIST);
    await expect(answer.text()).rejects.toThrow();
    delete archive.faults.breakOffAfter;
  });

  it('has the log of a container, and of the first one', async () => {
    for (const query of ['', '?container=one'])
      expect(await (await get(`/api/v1/namespaces/team/pods/pod/log${query}`)).text()).toBe('first');
    expect(archive.violations).toEqual([]);
  });
});
