import { stripVTControlCharacters } from 'node:util';
import type { ChatRequestBody } from './check.ts';
import {
  ask,
  type Conversation,
  calls,
  diffOf,
  exec,
  fence,
  quote,
  readConversation,
} from './conversation.ts';
import { diffsIn, failedTests, parseObject, suspect } from './demo-facts.ts';
import type { Script, ScriptedTurn } from './server.ts';

/** Name of the scripted model that uses all data sources; it signs its notes with it. */
export const KONFLUX_MODEL = 'konflux-script';

const SIGNATURE = `_Written by \`${KONFLUX_MODEL}\`, a scripted stand-in for a model. It read the data above with the real tools; it does not think._`;

const PIPELINE_RUNS = '/tmp/data/konflux/pipelineruns.jsonl';
const TASK_RUNS = '/tmp/data/konflux/taskruns.jsonl';
const RESULTS = '/tmp/data/testing-farm/results.xml';

/** Failed TaskRuns, one a line: name, PipelineRun, pod, message. */
const FAILED_TASKS =
  'select(any(.status.conditions[]?; .type == "Succeeded" and .status == "False")) | [.metadata.name, .metadata.labels["tekton.dev/pipelineRun"], .status.podName, .status.conditions[0].message] | @tsv';

/**
 * A stand-in for a model that looks into a pipeline whose tests ran in Konflux and Testing Farm, in the order that
 * `analyze-failures` and the notes of the sources teach: statuses, lists in one batch, the log of the pod that failed,
 * the results of the request that this log names, the log of the test. It keeps nothing between calls: all that it says
 * comes from what the tools returned, and its script for results from the system prompt.
 */
export const konfluxScript: Script = (request) => {
  const seen = readConversation(request);
  if (!request.tools) return report(seen);
  if (!seen.result('gitlab_get_commit_statuses'))
    return calls([
      ask(request, 'gitlab_get_mr_details', seen.event),
      ask(request, 'gitlab_get_commit_statuses', seen.event),
    ]);
  if (!seen.result('fetch_batch_to_sandbox')) return fetchLists(request, seen);
  if (!seen.exec(TASK_RUNS)) return exec(`jq -r ${quote(FAILED_TASKS)} ${quote(TASK_RUNS)}`);
  const [task] = failedTasks(seen);
  if (!task) return report(seen);
  if (!seen.result('konflux_get_pod_log'))
    return calls([ask(request, 'konflux_get_pod_log', { pod: task.pod })]);
  const requestId = requestIn(seen);
  if (requestId === undefined) return report(seen);
  if (!seen.result('tf_get_request_status')) return fetchResults(request, requestId);
  const lister = listerOf(request);
  if (!seen.exec(RESULTS) && lister !== undefined) return exec(lister.replace('FILE…', RESULTS));
  const [test] = failedInResults(seen);
  if (test === undefined) return report(seen);
  if (!seen.result('tf_get_test_log'))
    return calls([
      ask(request, 'tf_get_test_log', { url: test.url }),
      ask(request, 'gitlab_get_mr_diff', seen.event),
    ]);
  return report(seen);
};

function fetchLists(request: ChatRequestBody, seen: Conversation): ScriptedTurn {
  const runs = ask(request, 'konflux_list_pipelineruns', seen.event);
  const tasks = ask(request, 'konflux_list_taskruns', seen.event);
  const requests = [
    { tool: runs.name, args: runs.args, path: PIPELINE_RUNS },
    { tool: tasks.name, args: tasks.args, path: TASK_RUNS },
  ];
  return calls([{ name: 'fetch_batch_to_sandbox', args: { requests } }]);
}

function fetchResults(request: ChatRequestBody, requestId: string): ScriptedTurn {
  const results = ask(request, 'tf_get_results', { request_id: requestId });
  const fetch = { tool: results.name, args: results.args, path: RESULTS };
  return calls([
    ask(request, 'tf_get_request_status', { request_id: requestId }),
    { name: 'fetch_to_sandbox', args: fetch },
  ]);
}

/** The command that the notes of Testing Farm show for a file of results. */
function listerOf({ messages }: ChatRequestBody): string | undefined {
  const system = messages.find(({ role }) => role === 'system')?.content;
  return /python3 - FILE… <<'EOF'\n[\s\S]*?\nEOF/.exec(typeof system === 'string' ? system : '')?.[0];
}

interface FailedTask {
  readonly name: string;
  readonly pipelineRun: string;
  readonly pod: string;
  readonly message: string;
}

function failedTasks(seen: Conversation): readonly FailedTask[] {
  const lines = String(seen.exec(TASK_RUNS)?.['stdout'] ?? '').split('\n');
  return lines.flatMap((line): FailedTask[] => {
    const [name, pipelineRun, pod, message = ''] = line.split('\t');
    return name && pipelineRun && pod ? [{ name, pipelineRun, pod, message }] : [];
  });
}

/** A long text is looked at as far as its preview goes. */
const textOf = (result: Readonly<Record<string, unknown>> | undefined): string =>
  String(result?.['output'] ?? result?.['preview'] ?? '');

const requestIn = (seen: Conversation): string | undefined =>
  /Testing Farm request ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/.exec(
    textOf(seen.result('konflux_get_pod_log')),
  )?.[1];

interface FailedInResults {
  readonly name: string;
  readonly url: string;
}

/** From what the script of the notes prints: a test that failed, below it its logs. */
function failedInResults(seen: Conversation): readonly FailedInResults[] {
  const lines = String(seen.exec(RESULTS)?.['stdout'] ?? '').split('\n');
  return lines.flatMap((line, index): FailedInResults[] => {
    const name = /^FAILED (.*) \w*$/.exec(line)?.[1];
    if (name === undefined) return [];
    const next = lines.findIndex((other, at) => at > index && !other.startsWith('    '));
    const logs = lines.slice(index + 1, next < 0 ? undefined : next).map((log) => log.trim().split(' '));
    const url = logs.find(([log]) => log === 'testout.log')?.[1];
    return url === undefined ? [] : [{ name, url }];
  });
}

function report(seen: Conversation): ScriptedTurn {
  const missing = seen.errors();
  const parts = [...findings(seen)];
  if (missing.length > 0) parts.push('### Not looked at', missing.map((line) => `- ${line}`).join('\n'));
  return { text: [...parts, SIGNATURE].join('\n\n') };
}

function findings(seen: Conversation): readonly string[] {
  const [task] = failedTasks(seen);
  if (task === undefined)
    return ['**No failed TaskRun found**', 'Konflux lists none for this commit, or could not be read.'];
  const requestId = requestIn(seen);
  const [inResults] = failedInResults(seen);
  const log = stripVTControlCharacters(textOf(seen.result('tf_get_test_log')));
  const [test] = failedTests(log);
  const run = linkTo(task.pipelineRun, statusOf(seen, task.pipelineRun));
  if (requestId === undefined || inResults === undefined || test === undefined)
    return [`**PipelineRun ${run} failed** in TaskRun \`${task.name}\`: ${task.message}`];
  const title = seen.result('gitlab_get_mr_details')?.['title'];
  const change = suspect(test, diffsIn(diffOf(seen)));
  const base = String(seen.result('tf_get_request_status')?.['artifacts_base'] ?? '');
  const farm = `[${requestId}](${base}/${requestId}/)`;
  const evidence = [
    `- PipelineRun ${run}, TaskRun \`${task.name}\`: ${task.message}`,
    `- Testing Farm request ${farm}: test \`${inResults.name}\` failed, [testout.log](${inResults.url})`,
    '',
    'From the log of the test:',
    '',
    fence(`FAIL ${test.name}\n${test.assertion ?? ''}`.trimEnd(), 'text'),
    ...(change === undefined
      ? []
      : [
          '',
          `From the diff of \`${change.file}\`:`,
          '',
          fence(`-${change.before}\n+${change.after}`, 'diff'),
        ]),
  ];
  return [
    change === undefined
      ? `**1 root cause${of(title)}:** the test “${test.name}” fails; no changed line stands out.`
      : `**1 root cause${of(title)} (change):** the changed line in \`${change.file}\` breaks the test “${test.name}”, which Testing Farm ran for ${run}.`,
    `Failed: ${run}, [${inResults.name}](${inResults.url})`,
    `<details><summary>Evidence</summary>\n\n${evidence.join('\n')}\n\n</details>`,
    ...(change === undefined
      ? []
      : ['What to do: look at that line first; if the change is meant, the test has to follow it.']),
  ];
}

const of = (title: unknown): string => (typeof title === 'string' ? ` of “${title}”` : '');

const linkTo = (name: string, url: string | undefined): string =>
  url === undefined ? `\`${name}\`` : `[${name}](${url})`;

/** The link of the commit status that stands for the PipelineRun. */
function statusOf(seen: Conversation, pipelineRun: string): string | undefined {
  const lines = textOf(seen.result('gitlab_get_commit_statuses')).split('\n');
  const urls = lines.map((line) => String(parseObject(line)?.['target_url'] ?? ''));
  return urls.find((url) => url.endsWith(`/${pipelineRun}`));
}
