// A KubeArchive in a process of its own, so that what it holds shows in nobody's memory: 500 PipelineRuns of 160 KB of
// one commit, which it gives as one page, and some of another to warm up with. Prints its URL, ends with its stdin.
import { BUILD_LABEL, NAMESPACE, SHA, TOKEN } from '../test/builders/konflux.ts';
import { startKubeArchive } from '../test/fakes/kubearchive/server.ts';
import type { KeptObject } from '../test/fakes/kubearchive/state.ts';
import { ITEM_BYTES, ITEMS, WARM_UP_ITEMS, WARM_UP_SHA } from './page80.ts';

const archive = await startKubeArchive();
archive.state.grant(TOKEN, NAMESPACE);
for (let index = 0; index < ITEMS; index += 1) archive.state.keep(pipelineRun(`run-${index}`, SHA));
for (let index = 0; index < WARM_UP_ITEMS; index += 1)
  archive.state.keep(pipelineRun(`warm-up-${index}`, WARM_UP_SHA));
console.log(archive.url);
process.stdin.resume();
process.stdin.on('end', () => void archive.stop());

/** Much as Konflux has it: the pipeline as it was resolved, with the scripts of its tasks, and a status for each task. */
function pipelineRun(name: string, sha: string): KeptObject {
  const tasks: object[] = [];
  const object = {
    apiVersion: 'tekton.dev/v1',
    kind: 'PipelineRun',
    metadata: { name, namespace: NAMESPACE, uid: `uid-${name}`, labels: { [BUILD_LABEL]: sha } },
    status: {
      pipelineSpec: { tasks },
      conditions: [{ type: 'Succeeded', status: 'False', reason: 'Failed' }],
    },
  };
  for (let size = JSON.stringify(object).length; size < ITEM_BYTES; ) {
    const added = task(tasks.length);
    tasks.push(added);
    size += JSON.stringify(added).length + 1;
  }
  return object;
}

function task(index: number): object {
  const script = Array.from(
    { length: 30 },
    (_, line) =>
      `if [ "$STEP_${index}" -gt ${line} ]; then\n\techo "task ${index}: line ${line}" >> "$(results.LOG.path)"\nfi`,
  ).join('\n');
  const params = Array.from({ length: 20 }, (_, number) => ({
    name: `param-${number}`,
    type: 'string',
    default: `value-${index}-${number}`,
  }));
  return {
    name: `task-${index}`,
    taskSpec: { params, steps: [{ name: 'run', image: `registry/task:${index}`, script }] },
  };
}
