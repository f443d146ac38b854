import type { ChatRequestBody } from './check.ts';
import {
  type ChangedLine,
  diffsIn,
  FAILURE_PATTERN,
  type FailedStatus,
  type FailedTest,
  failedStatuses,
  failedTests,
  parseObject,
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

interface Conversation {
  readonly event: Readonly<Record<string, unknown>>;
  /** A user turn after an answer of ours. */
  readonly reply: string | undefined;
  /** Of the first call of this tool. */
  result(tool: string): Readonly<Record<string, unknown>> | undefined;
  /** Of the last command that mentions this text. */
  exec(text: string): Readonly<Record<string, unknown>> | undefined;
  errors(): readonly string[];
}

function readConversation({ messages }: ChatRequestBody): Conversation {
  const made: { name: string; args: string; result: Record<string, unknown> }[] = [];
  const open = new Map<string, { name: string; arguments: string }>();
  let event: Record<string, unknown> | undefined;
  let answered = false;
  let reply: string | undefined;
  for (const message of messages) {
    if (message.role === 'user') {
      event ??= parseObject(message.content) ?? parseObject(message.content.split('\n\n')[0] ?? '');
      if (answered) reply = message.content;
    } else if (message.role === 'assistant') {
      answered = !message.tool_calls;
      for (const call of message.tool_calls ?? []) open.set(call.id, call.function);
    } else if (message.role === 'tool') {
      const call = open.get(message.tool_call_id);
      const result = parseObject(message.content) ?? {};
      if (call) made.push({ name: call.name, args: call.arguments, result });
    }
  }
  return {
    event: event ?? {},
    reply,
    result: (tool) => made.find(({ name }) => name === tool)?.result,
    exec: (text) => made.findLast(({ name, args }) => name === 'sandbox_exec' && args.includes(text))?.result,
    errors: () =>
      made.flatMap(({ name, result }) =>
        typeof result['error'] === 'string' ? [`\`${name}\`: ${result['error']}`] : [],
      ),
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

/** The answer itself, or what the preview of a spilled one shows. */
function diffOf(seen: Conversation): unknown {
  const answer = seen.result('gitlab_get_mr_diff');
  const text = answer?.['output'] ?? answer?.['preview'];
  if (typeof text !== 'string') return answer;
  const whole = parseObject(text) ?? parseArray(text);
  if (whole) return whole;
  return [...text.matchAll(/"new_path":\s*"([^"]+)"[\s\S]*?"diff":\s*("(?:[^"\\]|\\.)*")/g)].map(
    ([, file, diff]) => ({
      new_path: file,
      diff: JSON.parse(diff ?? '""'),
    }),
  );
}

function parseArray(text: string): unknown {
  return parseObject(`{"list":${text}}`)?.['list'];
}

/** Arguments by the names that the tool's own schema gives them. */
function ask(request: ChatRequestBody, name: string, facts: Readonly<Record<string, unknown>>) {
  const schema = request.tools?.find((tool) => tool.function.name === name)?.function.parameters;
  const properties = parseObject(JSON.stringify(schema?.['properties'] ?? {})) ?? {};
  const args = Object.fromEntries(
    Object.keys(properties).flatMap((key) => (key in facts ? [[key, facts[key]]] : [])),
  );
  return { name, args };
}

function calls(toolCalls: readonly { name: string; args: Record<string, unknown> }[]): ScriptedTurn {
  return { toolCalls };
}

function exec(command: string): ScriptedTurn {
  return calls([{ name: 'sandbox_exec', args: { command } }]);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fence(text: string, language: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
