import type { FakeGitLab } from '../../../test/fakes/gitlab/index.ts';
import type { FakeMergeRequest, FakeProject } from '../../../test/fakes/gitlab/state.ts';
import { type FakeKubeArchive, startKubeArchive } from '../../../test/fakes/kubearchive/server.ts';
import { type FakeTestingFarm, startTestingFarm } from '../../../test/fakes/testing-farm/server.ts';
import { BUILD, build, REQUEST_ID, TESTS } from './objects.ts';

/** A tenant of Konflux whose integration tests run in Testing Farm, and what each of the three keeps of it. */
export interface KonfluxScene {
  readonly namespace: string;
  readonly archive: FakeKubeArchive;
  readonly farm: FakeTestingFarm;
  readonly requestId: string;
  stop(): Promise<void>;
}

/** A merge request whose tests do not run in GitLab. */
export interface TestedElsewhere {
  readonly gitlab: FakeGitLab;
  readonly project: FakeProject;
  readonly mergeRequest: FakeMergeRequest;
  readonly testOutput: string;
}

/**
 * KubeArchive and Testing Farm stand-ins, and GitLab's statuses of what ran in Konflux. The build is over and only
 * KubeArchive has it; the tests failed, and their output, which is real, is an artifact of Testing Farm.
 */
export async function konfluxScene(
  { gitlab, project, mergeRequest, testOutput }: TestedElsewhere,
  namespace = 'checkout-tenant',
): Promise<KonfluxScene> {
  const [archive, farm] = await Promise.all([startKubeArchive(), startTestingFarm()]);
  const { sha, author } = mergeRequest;
  archive.state.keep(...build(namespace, sha));
  publishResults(farm, testOutput);
  for (const [name, pipelineRun, status] of [
    ['Konflux / checkout-on-pull-request', BUILD, 'success'],
    ['Konflux / checkout-integration', TESTS, 'failed'],
  ] as const)
    gitlab.state.status(project, {
      ...{ sha, name, status, author },
      targetUrl: `https://konflux-ui.example.org/ns/${namespace}/pipelinerun/${pipelineRun}`,
      description: status === 'failed' ? 'Integration test failed' : 'Build succeeded',
    });
  return {
    namespace,
    archive,
    farm,
    requestId: REQUEST_ID,
    stop: async () => void (await Promise.all([archive.stop(), farm.stop()])),
  };
}

function publishResults(farm: FakeTestingFarm, testOutput: string): void {
  const folder = 'work-checkout/plans/checkout/execute/data/guest/default-0/tests/unit-1';
  const log = farm.artifact(REQUEST_ID, `${folder}/output.txt`, testOutput);
  farm.artifact(
    REQUEST_ID,
    'results.xml',
    `<?xml version="1.0" encoding="UTF-8"?>
<testsuites overall-result="failed">
 <testsuite name="/plans/checkout" result="failed" tests="2">
  <testcase name="/tests/lint" result="passed" time="1"/>
  <testcase name="/tests/unit" result="failed" time="4">
   <logs>
    <log name="log_dir" href="${log.replace('/output.txt', '')}"/>
    <log name="testout.log" href="${log}"/>
   </logs>
  </testcase>
 </testsuite>
</testsuites>
`,
  );
  farm.request(REQUEST_ID, {
    state: 'complete',
    result: { overall: 'failed', summary: null, xunit: null },
    queued_time: 15.6,
    run_time: 188,
  });
}
