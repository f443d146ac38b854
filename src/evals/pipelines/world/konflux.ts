import type { PipelineCase } from '../pipeline-case.ts';
import { CLUSTER_URL, NAMESPACE, SCOPE } from './places.ts';
import { json, type Route, text } from './routes.ts';

const LABELS = {
  build: 'pipelinesascode.tekton.dev/sha',
  test: 'pac.test.appstudio.openshift.io/sha',
} as const;

/** What the cluster of Konflux would answer: PipelineRuns, TaskRuns, pods and their logs. */
export function konfluxRoutes({ konflux }: PipelineCase): readonly Route[] {
  const objects = {
    pipelineruns: konflux.map(pipelineRun),
    taskruns: konflux.flatMap((run) => run.tasks.map((task) => taskRun(run, task))),
  };
  const at = (path: string, answer: Route['answer']): Route => ({ origin: CLUSTER_URL, path, answer });
  const core = `/api/v1/namespaces/${NAMESPACE}`;
  return [
    ...(['pipelineruns', 'taskruns'] as const).map((resource) =>
      at(`/apis/tekton.dev/v1/namespaces/${NAMESPACE}/${resource}`, (query) => {
        const [label = '', sha] = (query.get('labelSelector') ?? '').split('=');
        if (sha !== SCOPE.sha) return undefined;
        const items = objects[resource].filter(({ metadata }) => metadata.labels[label] === sha);
        return json({ apiVersion: 'tekton.dev/v1', kind: 'List', metadata: {}, items });
      }),
    ),
    ...konflux.flatMap((run) =>
      run.tasks
        .filter(({ logs }) => Object.keys(logs).length > 0)
        .flatMap((task) => [
          at(`${core}/pods/${podOf(run, task)}`, () => json(pod(run, task))),
          at(`${core}/pods/${podOf(run, task)}/log`, (query) => {
            const log = task.logs[query.get('container') ?? ''];
            return log === undefined ? undefined : text(log);
          }),
        ]),
    ),
  ];
}

type Run = PipelineCase['konflux'][number];
type Task = Run['tasks'][number];

const podOf = (run: Run, task: Task): string => `${run.name}-${task.name}-pod`;

function pipelineRun(run: Run) {
  return {
    apiVersion: 'tekton.dev/v1',
    kind: 'PipelineRun',
    metadata: metadataOf(run, run.name, {}),
    status: { conditions: [condition(run)] },
  };
}

function taskRun(run: Run, task: Task) {
  return {
    apiVersion: 'tekton.dev/v1',
    kind: 'TaskRun',
    metadata: metadataOf(run, `${run.name}-${task.name}`, { 'tekton.dev/pipelineRun': run.name }),
    status: { podName: podOf(run, task), conditions: [condition(task)] },
  };
}

function pod(run: Run, task: Task) {
  const containers = Object.keys(task.logs).map((name) => ({ name }));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadataOf(run, podOf(run, task), {}),
    spec: { containers },
    status: { containerStatuses: containers.map(({ name }) => ({ name, state: { terminated: {} } })) },
  };
}

function metadataOf({ kind, scenario }: Run, name: string, more: Readonly<Record<string, string>>) {
  const labels: Readonly<Record<string, string>> = {
    [LABELS[kind]]: SCOPE.sha,
    ...(scenario === undefined ? {} : { 'test.appstudio.openshift.io/scenario': scenario }),
    ...more,
  };
  return { name, namespace: NAMESPACE, uid: `uid-${name}`, labels };
}

const condition = ({ failed, message }: Pick<Task, 'failed' | 'message'>) => ({
  type: 'Succeeded',
  status: failed ? 'False' : 'True',
  reason: failed ? 'Failed' : 'Succeeded',
  message,
});
