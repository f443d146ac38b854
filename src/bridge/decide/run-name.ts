import { createHash } from 'node:crypto';

/** 80 bits: with a million runs the chance of any two causes sharing a name is below 10^-12. */
const HASH_CHARACTERS = 20;
const MAX_LABEL = 63;

/** Why a run is wanted. Two deliveries with the same cause are one run, however far apart they arrive. */
export interface RunCause {
  readonly workflow: string;
  readonly projectId: number;
  readonly iid: number;
  /** Empty when the head at the start of the run counts. */
  readonly sha: string;
  readonly trigger: 'Pipeline' | 'MergeRequest' | 'Command' | 'Reply';
  /** What GitLab calls the event: pipeline id, note id; the sha again for merge request events. */
  readonly eventId: string;
}

/**
 * `<workflow>-<hash of the cause>`: a DNS label of at most 63 characters, so that it also fits a label's value.
 * The API server's uniqueness of names is what makes a redelivered message harmless.
 */
export function runName(cause: RunCause): string {
  const { workflow, projectId, iid, sha, trigger, eventId } = cause;
  // A JSON list keeps its parts apart whatever they contain; the leading number is the version of this list.
  const text = JSON.stringify([1, projectId, iid, workflow, sha, trigger, eventId]);
  const hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARACTERS);
  return `${shortened(workflow)}-${hash}`;
}

/** For people only: the hash covers the whole name of the workflow. */
function shortened(workflow: string): string {
  const label = workflow
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_LABEL - HASH_CHARACTERS - 1)
    .replace(/^[^a-z0-9]+|-+$/g, '');
  return label === '' ? 'run' : label;
}
