import type { AgentRun } from '../../crds/agent-run.ts';
import { nameOf, type WorkflowView } from '../decide/decision.ts';
import { BUILT_IN } from './resolve.ts';

/** What the operator itself answers, as Markdown. No answer begins with a command. */

export function helpText(prefix: string, workflows: readonly WorkflowView[]): string {
  const rows = workflows.map((workflow) => {
    const { description, commands, suspend } = workflow.spec;
    const aliases = commands?.aliases ?? [];
    const also = aliases.length === 0 ? '' : ` (also ${aliases.map(code).join(', ')})`;
    const what = description === undefined ? '' : `: ${oneLine(description)}`;
    return `- ${code(`${prefix} ${nameOf(workflow)}`)}${also}${what}${suspend === true ? ' _Suspended._' : ''}`;
  });
  const builtIn = Object.entries(BUILT_IN).map(([name, what]) => `- ${code(`${prefix} ${name}`)}: ${what}`);
  return [
    'A comment that begins with one of these starts a workflow on this merge request. The beginning of a name is enough when it fits one only, and words behind it are handed to the workflow.',
    ...(rows.length === 0 ? ['No workflow serves this project.'] : [rows.join('\n')]),
    builtIn.join('\n'),
    'A reply in the thread of an answer goes on with its conversation.',
  ].join('\n\n');
}

export const unknownText = (name: string, prefix: string, workflows: readonly WorkflowView[]): string =>
  `There is no command ${code(name)}.\n\n${helpText(prefix, workflows)}`;

export const ambiguousText = (name: string, prefix: string, workflows: readonly WorkflowView[]): string =>
  `Several workflows begin with ${code(name)}; which one is meant?\n\n${workflows
    .map((workflow) => `- ${code(`${prefix} ${nameOf(workflow)}`)}`)
    .join('\n')}`;

export const deniedText = (project: string): string =>
  `Only members of ${code(project)} with the Developer role or more can ask for this. Nothing was started.`;

export const suspendedText = (workflow: string): string =>
  `The workflow ${code(workflow)} is suspended at the moment. Nothing was started.`;

export const tooLongText = (given: number, limit: number): string =>
  `This text has ${given} characters, and a workflow can be given ${limit}. Nothing was started; please say it shorter, or put the long part into the merge request.`;

export const goneText = (workflow: string, prefix: string): string =>
  `The workflow ${code(workflow)}, which this thread belongs to, does not serve this project any more. ${code(`${prefix} help`)} lists what there is.`;

/** At most so many rows: a merge request can have hundreds of runs. */
const MAX_ROWS = 10;

/** Newest first. */
export function statusText(runs: readonly AgentRun[]): string {
  if (runs.length === 0) return 'No run on this merge request is known.';
  const newest = runs.toSorted((a, b) => createdMs(b) - createdMs(a));
  const rows = newest.slice(0, MAX_ROWS).map(({ metadata, spec, status }) => {
    const cost = status?.costUSD === undefined ? '' : `${status.costUSD} USD`;
    const cells = [
      code(metadata.name ?? ''),
      code(spec.workflowRef.name),
      phaseOf(status),
      String(status?.iterations ?? 0),
      cost,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const more = newest.length - rows.length;
  return [
    ['| run | workflow | phase | model calls | cost |', '| --- | --- | --- | --- | --- |', ...rows].join(
      '\n',
    ),
    ...(more > 0 ? [`and ${more} older ones`] : []),
  ].join('\n\n');
}

export function cancelText(runs: readonly AgentRun[], workflow: string | undefined): string {
  const whose = workflow === undefined ? '' : ` of ${code(workflow)}`;
  if (runs.length === 0) return `No run${whose} is under way on this merge request.`;
  const names = runs.map(({ metadata }) => `- ${code(metadata.name ?? '')}`).join('\n');
  return `Stopping ${runs.length === 1 ? 'this run' : `these ${runs.length} runs`}${whose}:\n\n${names}`;
}

/** What the answer to a question did. */
export const approvalText = (tool: string, run: string, verdict: 'approve' | 'deny'): string =>
  verdict === 'approve'
    ? `Approved: ${code(run)} may call ${code(tool)} as it asked, once.`
    : `Denied: ${code(run)} goes on without its call of ${code(tool)}.`;

export const decidedText = (id: string, tool: string, state: string): string =>
  `Nothing was changed: the call of ${code(tool)} (${code(id)}) is ${state.toLowerCase()} already.`;

/** Newest last, as they were asked. */
export function unclearText(
  prefix: string,
  waiting: readonly { readonly id: string; readonly tool: string; readonly run: string }[],
): string {
  if (waiting.length === 0) return 'No call waits for approval on this merge request.';
  const rows = waiting.map(
    ({ id, tool, run }) => `- ${code(`${prefix} approve ${id}`)}: ${code(tool)}, of ${code(run)}`,
  );
  return `Nothing was changed: which call is meant? Its note has the arguments.\n\n${rows.join('\n')}`;
}

function phaseOf(status: AgentRun['status']): string {
  const reason = status?.conditions?.find(({ type }) => type === 'Succeeded')?.reason;
  const phase = status?.phase ?? 'Pending';
  return reason === undefined || reason === phase ? phase : `${phase} (${reason})`;
}

const createdMs = ({ metadata }: AgentRun): number => Date.parse(metadata.creationTimestamp ?? '') || 0;

/** Longer than any name that could be meant. */
const MAX_QUOTE = 64;

/** As a code span: whatever was written, it can only be read. */
function code(text: string): string {
  const shown = text.length > MAX_QUOTE + 64 ? `${text.slice(0, MAX_QUOTE)}…` : text;
  return `\`${shown.replace(/[`\s|]+/g, ' ')}\``;
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();
