import type { SourceScope } from '../../../sources/port.ts';
import type { Move, Seen } from './scripted-model.ts';

type Call = Extract<Move, { kind: 'Call' }>['calls'][number];

/** What the workflow's prompt wants in the first turn. */
export const firstReads = ({ project, iid, sha }: SourceScope): readonly Call[] => [
  { tool: 'gitlab_get_mr_details', args: { project, iid } },
  { tool: 'gitlab_get_commit_statuses', args: { project, sha } },
];

/**
 * What leads on from all that was shown, as links and names in it say: logs of failed jobs and the diff, lists of
 * Konflux when another system has failed, logs of pods, results of Testing Farm and the logs that they name.
 * Empty when everything has been read.
 */
export function nextReads({ turn, answers }: Seen, { project, iid, sha }: SourceScope): readonly Call[] {
  if (turn === 2) {
    const failed = failedStatuses(answers);
    const native = failed.flatMap((line) => /\/-\/jobs\/(\d+)/.exec(line)?.[1] ?? []);
    return [
      ...native.map((id) => ({ tool: 'gitlab_get_job_log', args: { project, job_id: Number(id) } })),
      { tool: 'gitlab_get_mr_diff', args: { project, iid } },
      ...(failed.some((line) => !line.includes('/-/jobs/'))
        ? LISTS.map((tool) => ({ tool, args: { sha } }))
        : []),
    ];
  }
  const text = answers.map((answer) => answer.text).join('\n');
  if (turn === 3)
    return [
      ...podsOf(answers).map((pod) => ({ tool: 'konflux_get_pod_log', args: { pod } })),
      ...unique(text, UUID).flatMap((id) => [
        { tool: 'tf_get_request_status', args: { request_id: id } },
        { tool: 'tf_get_results', args: { request_id: id } },
      ]),
    ];
  if (turn === 4) return unique(text, LOG_LINK).map((url) => ({ tool: 'tf_get_test_log', args: { url } }));
  return [];
}

const LISTS = ['konflux_list_pipelineruns', 'konflux_list_taskruns'] as const;
const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const LOG_LINK = /(?<=href=")https:[^"]+/g;

const unique = (text: string, pattern: RegExp): readonly string[] => [...new Set(text.match(pattern) ?? [])];

function failedStatuses(answers: Seen['answers']): readonly string[] {
  return linesOf(answers, 'gitlab_get_commit_statuses').filter(
    (line) => line.includes('"status":"failed"') && !line.includes('"allow_failure":true'),
  );
}

/** Pods of TaskRuns that failed. */
function podsOf(answers: Seen['answers']): readonly string[] {
  return linesOf(answers, 'konflux_list_taskruns').flatMap((line) =>
    line.includes('"status":"False"') ? (/"podName":"([^"]+)"/.exec(line)?.[1] ?? []) : [],
  );
}

const linesOf = (answers: Seen['answers'], tool: string): readonly string[] =>
  answers.filter((answer) => answer.tool === tool).flatMap(({ text }) => text.split('\n'));
