import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aScene } from '../../test/fakes/gitlab/scene.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { toolToken } from '../settings/tokens.ts';
import { createSourceFactory, type DeclaredSources } from './factory.ts';

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
let token: string;

beforeEach(async () => {
  scene = await aScene();
  http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
  token = scene.state.projectBot(scene.project, { scopes: ['read_api'], level: 20 }).token;
});
afterEach(async () => {
  expect(scene.gitlab.violations).toEqual([]);
  await http.close();
  await scene.gitlab.stop();
});

const workflow = { namespace: 'ns', name: 'wf' };
const scope = () => ({ project: 'group/app', iid: 1, sha: scene.mergeRequest.sha });
const context = () => ({ signal: AbortSignal.timeout(60_000) });
const gitlab = () => ({ token: toolToken(token), allowedProjects: ['group/lib'] });

function toolsOf(declared: DeclaredSources, asked: unknown[] = []) {
  return createSourceFactory({
    http,
    gitlabUrl: scene.gitlab.url,
    markerPrefix: 'our-session',
    declared: async (ref, project) => {
      asked.push([ref, project]);
      return declared;
    },
  }).toolsFor({ workflow, scope: scope() });
}

describe('the tools of a run', () => {
  test('read with what the workflow declares for the project', async () => {
    const asked: unknown[] = [];
    const [first] = await toolsOf({ gitlab: gitlab() }, asked);
    expect(asked).toEqual([[workflow, 'group/app']]);
    await first?.run({ project: 'group/app', iid: 1 }, context());
    expect(scene.gitlab.requests.map((request) => request.token)).toEqual([token]);
  });

  test('have the projects that the workflow allows in their scope', async () => {
    const [first] = await toolsOf({ gitlab: gitlab() });
    expect(await first?.run({ project: 'a/b', iid: 1 }, context())).toMatchObject({
      message: expect.stringContaining('anything in "group/lib"'),
    });
  });

  test('know the markers of agents, whatever their word', async () => {
    const body = 'Found.\n\n_Model: m_\n\n<!-- our-session: {"id":"1","wf":"w"} -->';
    scene.state.note(scene.mergeRequest, { author: scene.users.ada, body });
    const tools = await toolsOf({ gitlab: gitlab() });
    const tool = tools.find(({ definition }) => definition.name === 'gitlab_get_mr_discussions');
    const output = await tool?.run({ project: 'group/app', iid: 1 }, context());
    if (output?.kind !== 'Stream') throw new Error(JSON.stringify(output));
    const bodies: unknown[] = [];
    for await (const chunk of output.chunks)
      bodies.push(JSON.parse(Buffer.from(chunk).toString()).notes[0].body);
    expect(bodies).toEqual(['Found.']);
  });

  test('are those of declared sources only, and without one there are none', async () => {
    const kinds = async (declared: DeclaredSources) => [
      ...new Set((await toolsOf(declared)).map(({ definition }) => definition.name.split('_')[0])),
    ];
    expect(await kinds({})).toEqual([]);
    expect(await kinds({ gitlab: gitlab() })).toEqual(['gitlab']);
    expect(await kinds({ testingFarm: {} })).toEqual(['tf']);
    expect(await kinds({ gitlab: gitlab(), testingFarm: {} })).toEqual(['gitlab', 'tf']);
  });
});
