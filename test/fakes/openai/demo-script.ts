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
import {
  type ChangedLine,
  diffsIn,
  FAILURE_PATTERN,
  type FailedStatus,
  type FailedTest,
  failedStatuses,
  failedTests,
  suspect,
} from './demo-facts.ts';
import type { Script, ScriptedTurn } from './server.ts';

/** Name of the scripted model; it signs its notes with it. */
export const DEMO_MODEL = 'demo-script';

const SIGNATURE = `_Written by \`${DEMO_MODEL}\`, a scripted stand-in for a model. It read the data above with the real tools; it does not think._`;

/**
 * A stand-in for a model that looks into a failed pipeline as `analyze-failures` asks: details and statuses, then
 * the failed job's log and the diff, then a search of the log in the sandbox, then the report. It keeps nothing
 * between calls: all that it says comes from the conversation, that is from what the tools really returned.
 */
export const demoScript: Script = (request) => {
  const seen = readConversation(request);
  if (seen.reply !== undefined) return answerReply(seen.reply);
  if (!request.tools) return report(seen);

  if (!seen.result('gitlab_get_commit_statuses')) {
    return calls([
      ask(request, 'gitlab_get_mr_details', seen.event),
      ask(request, 'gitlab_get_commit_statuses', seen.event),
    ]);
  }
  const statuses = seen.result('gitlab_get_commit_statuses');
  const statusFile = statuses?.['saved_to'];
  if (typeof statusFile === 'string' && !seen.exec(statusFile)) {
    return exec(`grep '"failed"' ${quote(statusFile)} | head -n 20`);
  }
  const failed = failedStatus(seen);
  if (!failed) return report(seen);
  if (!seen.result('gitlab_get_job_log')) {
    const facts = { ...seen.event, job_id: failed.jobId };
    return calls([ask(request, 'gitlab_get_job_log', facts), ask(request, 'gitlab_get_mr_diff', seen.event)]);
  }
  if (!seen.exec(logFile(seen, failed))) return searchLog(request, seen, failed);
  return report(seen);
};

/** A short log came inline: then it is fetched into a file first, so that it is searched as a long one is. */
function searchLog(request: ChatRequestBody, seen: Conversation, failed: FailedStatus): ScriptedTurn {
  const file = logFile(seen, failed);
  const search = {
    name: 'sandbox_exec',
    args: {
      command: `grep -nE -A 12 ${quote(FAILURE_PATTERN)} ${quote(file)} | head -n 200; echo "--- end of the log"; tail -n 5 ${quote(file)}`,
    },
  };
  if (typeof seen.result('gitlab_get_job_log')?.['saved_to'] === 'string') return calls([search]);
  const log = ask(request, 'gitlab_get_job_log', { ...seen.event, job_id: failed.jobId });
  const fetch = { name: 'fetch_to_sandbox', args: { tool: log.name, args: log.args, path: file } };
  return calls([fetch, search]);
}

function report(seen: Conversation): ScriptedTurn {
  const failed = failedStatus(seen);
  const missing = seen.errors();
  const parts = [];
  if (!failed) {
    parts.push(
      '**No failed job found**',
      'No commit status of this merge request is `failed`, or the statuses could not be read.',
    );
  } else {
    const search = seen.exec(logFile(seen, failed));
    const tests = failedTests(String(search?.['stdout'] ?? ''));
    const change = tests[0] && suspect(tests[0], diffsIn(diffOf(seen)));
    parts.push(...findings(seen, failed, tests, change));
  }
  if (missing.length > 0) parts.push('### Not looked at', missing.map((line) => `- ${line}`).join('\n'));
  parts.push(SIGNATURE);
  return { text: parts.join('\n\n') };
}

function findings(
  seen: Conversation,
  failed: FailedStatus,
  tests: readonly FailedTest[],
  change: ChangedLine | undefined,
): readonly string[] {
  const [test] = tests;
  const title = seen.result('gitlab_get_mr_details')?.['title'];
  const job = failed.url ? `[${failed.name}](${failed.url})` : failed.name;
  const of = typeof title === 'string' ? ` of “${title}”` : '';
  if (!test) {
    return [`**Job ${job}${of} failed**`, 'Its log names no failed test that this script can recognise.'];
  }
  const headline = change
    ? `**1 root cause in job ${job}${of}:** the changed line in \`${change.file}\` breaks the test “${test.name}”.`
    : `**Job ${job}${of} failed** in the test “${test.name}”; no changed line stands out.`;
  const evidence = [
    `Failed test: \`${test.name}\`${test.place ? ` (\`${test.place}\`)` : ''}`,
    ...(test.assertion ? ['', 'From the log:', '', fence(test.assertion, 'text')] : []),
    ...(change
      ? ['', `From the diff of \`${change.file}\`:`, '', fence(`-${change.before}\n+${change.after}`, 'diff')]
      : []),
  ].join('\n');
  const others = tests.slice(1).map(({ name }) => `- ${name}`);
  return [
    headline,
    `<details><summary>Evidence</summary>\n\n${evidence}\n\n</details>`,
    ...(others.length > 0 ? [`Other failed tests:\n\n${others.join('\n')}`] : []),
    ...(change
      ? ['What to do: look at that line first; if the change is meant, the test has to follow it.']
      : []),
  ];
}

function answerReply(reply: string): ScriptedTurn {
  const shown = reply.length > 200 ? `${reply.slice(0, 200)}…` : reply;
  return {
    text: `You wrote: “${shown.replace(/\s+/g, ' ')}”. A script cannot answer questions; a real model would, here.\n\n${SIGNATURE}`,
  };
}

function failedStatus(seen: Conversation): FailedStatus | undefined {
  const statuses = seen.result('gitlab_get_commit_statuses');
  const file = statuses?.['saved_to'];
  const text = typeof file === 'string' ? seen.exec(file)?.['stdout'] : statuses?.['output'];
  return failedStatuses(String(text ?? ''))[0];
}

function logFile(seen: Conversation, { jobId }: FailedStatus): string {
  const saved = seen.result('gitlab_get_job_log')?.['saved_to'];
  return typeof saved === 'string' ? saved : `/tmp/data/logs/job-${jobId}.log`;
}
