import { type FauxqsServer, startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apply } from '../../hack/operator/install.ts';
import { run } from '../../hack/operator/objects.ts';
import { aChart } from '../builders/charts.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { type ChartServer, startChartServer } from '../fakes/charts/server.ts';
import type { FakeMergeRequest } from '../fakes/gitlab/state.ts';
import { mergeRequestHook } from '../fakes/gitlab/webhooks.ts';
import { publishToTopic } from '../fakes/sns-publish.ts';
import { aWorld, PROJECT, type World } from './world.ts';

const PATH = 'apps/balancer.yaml';
/** Native mode is on, and the daemon off, while nobody sets them; from 2.0.0 it is the other way round. */
const modes = (version: string) => {
  const [native, daemon] = version.startsWith('1')
    ? ['ne (toString .Values.native.enabled) "false"', 'eq (toString .Values.daemon.enabled) "true"']
    : ['eq (toString .Values.native.enabled) "true"', 'ne (toString .Values.daemon.enabled) "false"'];
  const service = (name: string, when: string) =>
    `{{ if ${when} }}\napiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\n{{ end }}`;
  return aChart(
    version,
    {
      'values.yaml': 'native: {enabled: }\ndaemon: {enabled: }\n',
      'templates/map.yaml': '',
      'templates/native.yaml': service('native', native),
      'templates/daemon.yaml': service('daemon', daemon),
    },
    'balancer',
  );
};
const application = (charts: string, version: string): string =>
  `# the load balancer
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: balancer
  namespace: argocd
spec:
  project: default
  destination:
    server: https://kubernetes.default.svc
    namespace: balancer
  source:
    repoURL: ${charts}
    chart: balancer
    targetRevision: ${version}
    helm:
      valuesObject:
        native:
          enabled: ~ # as the chart has it
        daemon:
          enabled: ~
`;
const at = (mode: string) => `spec.source.helm.valuesObject.${mode}.enabled`;
const edit = (key: string, to: string) => ({
  path: PATH,
  key,
  from: '~',
  to,
  rationale: 'The new version flips this default.',
});
const answer = (value: object) =>
  JSON.stringify({ summary: 'Both defaults flip', reasoning: '', edits: [], escalationReason: '', ...value });

describe('chart bumps', () => {
  let world: World;
  let aws: FauxqsServer;
  let charts: ChartServer;
  let topicArn: string;
  /** What the model answers, by what it is shown. */
  let verdict: (shown: string) => string = () => '';

  beforeAll(async () => {
    aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
    const { queueUrl } = aws.createQueue('events');
    topicArn = aws.createTopic('webhooks').topicArn;
    aws.subscribe({ topic: 'webhooks', queue: 'events' });
    charts = await startChartServer({ charts: [modes('1.0.0'), modes('2.0.0')] });
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      scripts: { 'test-script': ({ messages }) => ({ text: verdict(String(messages.at(-1)?.content)) }) },
      workflowSpec: {
        prompt: undefined,
        limits: { timeout: '5m' },
        triggers: [{ event: 'MergeRequest' }],
        publish: { kind: 'Note', internal: false },
        delivery: { bumps: { labels: ['deps'] }, edits: { allowPaths: ['apps/**'] } },
      },
      operator: async () => ({
        args: [`--chart-repository=${charts.url}`],
        queue: { url: queueUrl, endpoint: aws.address },
      }),
    });
    await world.operator.waitReady();
    world.gitlab.state.commit(world.project, {
      branch: world.project.defaultBranch,
      files: { [PATH]: application(charts.url, '1.0.0'), 'README.md': 'Ours.\n' },
    });
  }, 600_000);
  afterAll(async () => {
    await world?.close();
    await charts?.close();
    await aws?.stop();
  });

  /** A merge request of a bot's that moves the chart to a version. */
  function aBump(branch: string, version = '2.0.0', more: Partial<FakeMergeRequest> = {}): FakeMergeRequest {
    const { state } = world.gitlab;
    state.commit(world.project, {
      branch,
      from: world.project.defaultBranch,
      files: { [PATH]: application(charts.url, version) },
      message: `Move balancer to ${version}`,
      author: world.mergeRequest.author,
    });
    return state.mergeRequest(world.project, {
      author: world.mergeRequest.author,
      title: `Move balancer to ${version}`,
      sourceBranch: branch,
      labels: ['deps'],
      ...more,
    });
  }
  const textOf = (branch: string): string => {
    const file = world.project.repository.at(branch)?.tree.get(PATH);
    return file !== undefined && 'bytes' in file ? new TextDecoder().decode(file.bytes) : '';
  };
  const notesOn = ({ discussions }: FakeMergeRequest): readonly string[] =>
    discussions.flatMap(({ notes }) => notes.filter(({ author }) => author.bot).map(({ body }) => body));
  const statusesOf = (sha: string) =>
    world.project.statuses.filter((status) => status.sha === sha && status.name === 'analyze-failures');
  const byHand = async (name: string, { iid }: FakeMergeRequest) => {
    await apply(world.cluster, run(world.namespaces, { name, project: PROJECT, iid }));
    return await world.waitEnd(name, 180_000);
  };

  it('repairs a bump that flips two defaults, by one commit, and says so on the merge request', async () => {
    verdict = () =>
      answer({
        classification: 'mechanical',
        edits: [edit(at('native'), 'true'), edit(at('daemon'), 'false')],
      });
    const bump = aBump('bump-repaired');
    const { sha } = bump;
    await publishToTopic(
      aws.address,
      topicArn,
      JSON.stringify(mergeRequestHook(world.gitlab.url, bump, { action: 'open' })),
      { source: 'gitlab', event_type: 'merge_request' },
    );
    const names = async () =>
      (await world.kubectl(['get', 'agentruns', '-n', world.namespaces.agents, '-o', 'name'])).trim();
    await expect.poll(names, { timeout: 120_000 }).toMatch(/analyze-failures-/);
    const done = await world.waitEnd((await names()).replace(/^.*\//, ''), 180_000);

    expect(done.status).toMatchObject({ phase: 'Succeeded', iterations: 1, sha });
    const head = world.project.repository.at('bump-repaired');
    expect(head?.parents).toEqual([sha]);
    expect(head?.message).toContain(`Hummingbird-Run: ${done.metadata.uid}`);
    expect(textOf('bump-repaired')).toBe(
      application(charts.url, '2.0.0')
        .replace('enabled: ~ # as', 'enabled: true # as')
        .replace('enabled: ~\n', 'enabled: false\n'),
    );
    expect(bump.labels.toSorted()).toEqual(['deps', 'hummingbird/attempt-1']);
    expect(notesOn(bump)).toHaveLength(1);
    expect(notesOn(bump)[0]).toMatch(/### Fixed/);
    expect(notesOn(bump)[0]).toContain('the gate is green');
    expect(notesOn(bump)[0]).not.toContain('Reply to this note');
    expect(notesOn(bump)[0]).toContain(String(head?.sha.slice(0, 12)));
    expect(statusesOf(String(head?.sha)).map(({ status }) => status)).toEqual(['success']);
    expect(statusesOf(sha).map(({ status }) => status)).not.toContain('failed');
    expect(await world.events(done.metadata.name ?? '')).toContain('BumpRepaired');
    expect(charts.faults).toEqual([]);
    expect(await world.podsOf(done)).toEqual([]);
  }, 300_000);

  it('escalates what it cannot prove: a label, a note, a green status, and no commit', async () => {
    verdict = () =>
      answer({
        classification: 'mechanical',
        edits: [edit(at('speaker'), 'true')],
        summary: 'Set the speaker',
      });
    const bump = aBump('bump-escalated');
    const ended = await byHand('escalated', bump);
    expect(ended.status).toMatchObject({ phase: 'Succeeded' });
    expect(world.project.repository.at('bump-escalated')?.sha).toBe(bump.sha);
    expect(bump.labels.toSorted()).toEqual(['deps', 'needs-human']);
    expect(notesOn(bump)[0]).toMatch(/### Needs a person/);
    expect(notesOn(bump)[0]).toContain(at('speaker'));
    expect(statusesOf(bump.sha).at(-1)).toMatchObject({ status: 'success' });
    // People have it now.
    const again = await byHand('left', bump);
    expect(again.status?.outcome).toMatchObject({ reason: 'SkippedRule' });
  }, 300_000);

  it.each<[string, (branch: string) => FakeMergeRequest, RegExp]>([
    ['a chart that is not there', (branch) => aBump(branch, '9.9.9'), /does not render at the new version/],
    [
      'a fork',
      (branch) => {
        const fork = world.gitlab.state.project({ path: 'stranger/app' });
        const main = world.project.repository.at(world.project.defaultBranch);
        for (const [sha, commit] of world.project.repository.commits)
          fork.repository.commits.set(sha, commit);
        if (main !== undefined) fork.repository.branches.set(branch, main.sha);
        world.gitlab.state.commit(fork, {
          branch,
          files: { [PATH]: application(charts.url, '2.0.0') },
          author: world.mergeRequest.author,
        });
        return world.gitlab.state.mergeRequest(world.project, {
          author: world.mergeRequest.author,
          sourceProject: fork,
          sourceBranch: branch,
          labels: ['deps'],
        });
      },
      /comes from a fork/,
    ],
  ])(
    'pushes nothing over %s, and says why in one sentence',
    async (what, prepare, reason) => {
      verdict = () =>
        answer({
          classification: 'mechanical',
          edits: [edit(at('native'), 'true'), edit(at('daemon'), 'false')],
        });
      const branch = `bump-${what.replaceAll(' ', '-')}`;
      const bump = prepare(branch);
      const ended = await byHand(`bad-${what.replaceAll(' ', '-')}`, bump);
      expect(ended.status).toMatchObject({ phase: 'Succeeded' });
      expect(bump.sourceProject?.repository.at(branch)?.sha).toBe(bump.sha);
      expect(notesOn(bump).join('\n')).toMatch(reason);
      expect(bump.labels).toContain('needs-human');
    },
    300_000,
  );

  it('leaves a branch alone that moved while it was looked at', async () => {
    const bump = aBump('bump-moved');
    const before = bump.sha;
    verdict = () => {
      world.gitlab.state.commit(world.project, {
        branch: 'bump-moved',
        files: { 'README.md': 'Somebody was here.\n' },
        author: world.mergeRequest.author,
      });
      return answer({
        classification: 'mechanical',
        edits: [edit(at('native'), 'true'), edit(at('daemon'), 'false')],
      });
    };
    const ended = await byHand('moved', bump);
    expect(ended.status?.outcome).toMatchObject({ reason: 'Superseded' });
    const head = world.project.repository.at('bump-moved');
    expect(head?.parents).toEqual([before]);
    expect(head?.message).toBe('Change');
    expect(textOf('bump-moved')).toBe(application(charts.url, '2.0.0'));
  }, 300_000);
});
