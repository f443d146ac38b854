import type { KeptObject } from '../../../test/fakes/kubearchive/state.ts';

/** The request of Testing Farm that the failed tests made. */
export const REQUEST_ID = '3b9f2c1e-5d47-4a86-9b0c-7e21f4d8a6c5';
/** PipelineRuns: the build, which succeeded, and the tests of what was built, which failed. */
export const BUILD = 'checkout-on-pull-request-x7k2p';
export const TESTS = 'checkout-integration-m4q8d';
export const POD = `${TESTS}-run-tests-pod`;
/** ServiceAccount of the tenant that the data source reads as. */
export const READER = 'hummingbird-reader';

/** One of Tekton's objects, as KubeArchive keeps it; the cluster gives it another uid. */
export type RunObject = KeptObject & { readonly status: object };

/** The build and its TaskRuns. */
export function build(namespace: string, sha: string): readonly RunObject[] {
  const labels = { 'pipelinesascode.tekton.dev/sha': sha };
  const tasks = ['init', 'build-container'].map((task) => `${BUILD}-${task}`);
  return [
    runObject('PipelineRun', BUILD, namespace, labels, SUCCEEDED),
    ...tasks.map((name) =>
      runObject(
        'TaskRun',
        name,
        namespace,
        { ...labels, ...partOf(BUILD) },
        { ...SUCCEEDED, podName: `${name}-pod` },
      ),
    ),
  ];
}

/** The failed tests: the PipelineRun and its one TaskRun. */
export function tests(namespace: string, sha: string): readonly RunObject[] {
  const labels = testLabels(sha);
  const failed = (message: string) => ({
    conditions: [{ type: 'Succeeded', status: 'False', reason: 'Failed', message }],
  });
  return [
    runObject(
      'PipelineRun',
      TESTS,
      namespace,
      labels,
      failed('Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0'),
    ),
    runObject(
      'TaskRun',
      `${TESTS}-run-tests`,
      namespace,
      { ...labels, ...partOf(TESTS) },
      { ...failed('"step-run-tests" exited with code 1'), podName: POD },
    ),
  ];
}

/** What the pod of the tests prints, line by line, as a task that starts tests in Testing Farm and waits for them. */
export const podLog = (sha: string, page: string): readonly string[] => [
  `Testing checkout at ${sha}`,
  `Testing Farm request ${REQUEST_ID} is queued: ${page}`,
  'state: running',
  'state: complete, result: failed',
];

/** That pod. It prints, and fails. */
export function testPod(namespace: string, sha: string, image: string, page: string): object {
  const script = [...podLog(sha, page).map((line) => `echo "${line}"`), 'exit 1'].join('\n');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: POD, namespace, labels: { ...testLabels(sha), ...partOf(TESTS) } },
    spec: {
      restartPolicy: 'Never',
      serviceAccountName: READER,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          ...{ name: 'step-run-tests', image, command: ['sh', '-c', script] },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}

const testLabels = (sha: string) => ({
  'pac.test.appstudio.openshift.io/sha': sha,
  'test.appstudio.openshift.io/scenario': 'checkout-integration',
});
const partOf = (pipelineRun: string) => ({ 'tekton.dev/pipelineRun': pipelineRun });

const SUCCEEDED = {
  conditions: [
    { type: 'Succeeded', status: 'True', reason: 'Succeeded', message: 'All Tasks have completed' },
  ],
};

function runObject(
  kind: 'PipelineRun' | 'TaskRun',
  name: string,
  namespace: string,
  labels: Readonly<Record<string, string>>,
  status: object,
): RunObject {
  return {
    apiVersion: 'tekton.dev/v1',
    kind,
    metadata: { name, namespace, uid: `uid-of-${name}`, creationTimestamp: '2026-11-30T08:00:00Z', labels },
    status,
  };
}
