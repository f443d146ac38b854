import type { AuditFact, PodWrite } from './log.ts';

export interface OwnershipReport {
  /** One sentence each; empty when all is well. */
  readonly violations: readonly string[];
  readonly pods: number;
  readonly writes: number;
  readonly commands: number;
  /** Pods that got an owner, by the run's uid. */
  readonly claims: ReadonlyMap<string, readonly PodWrite[]>;
  /** Writes that were refused because somebody else had been faster. */
  readonly conflicts: number;
  /** How long the write took that gave a pod to a run. */
  readonly claimMs: readonly number[];
  /** From the making of a run to its first pod. */
  readonly waitMs: readonly number[];
}

/**
 * Plays the log again, write by write, and looks at every instant: no pod changes hands between runs (but within a
 * session, for which it lingered: active, and no run's), no run has two pods that are not going, no command runs in a
 * pod that is nobody's, and at the end every pod that had an owner is gone or lingers. `runs`: uids of the runs that may own pods.
 */
export function checkOwnership(facts: readonly AuditFact[], runs: ReadonlySet<string>): OwnershipReport {
  const writes = facts.filter((fact) => fact.kind === 'PodWrite').toSorted(byVersion);
  const made = new Map(facts.flatMap((fact) => (fact.kind === 'RunMade' ? [[fact.uid, fact.atMs]] : [])));
  const violations: string[] = [];
  const last = new Map<string, PodWrite>();
  const claims = new Map<string, PodWrite[]>();
  for (const write of writes) {
    const before = last.get(write.uid);
    violations.push(...changeOfHands(before, write));
    if (write.owner !== undefined && write.owner !== before?.owner) {
      if (!runs.has(write.owner))
        violations.push(`pod ${write.name} belongs to ${write.owner}, which is no run`);
      claims.set(write.owner, [...(claims.get(write.owner) ?? []), write]);
    }
    last.set(write.uid, { ...write, going: write.going || before?.going === true });
    if (write.owner !== undefined) violations.push(...secondPod(write.owner, last, write));
  }
  for (const pod of last.values())
    if (pod.owner !== undefined && !pod.going)
      violations.push(`pod ${pod.name} of run ${pod.owner} was never deleted`);
  const commands = facts.filter((fact) => fact.kind === 'Command');
  violations.push(...commandsInNobodysPod(commands, writes));
  return {
    violations: [...new Set(violations)],
    pods: last.size,
    writes: writes.length,
    commands: commands.length,
    claims,
    conflicts: facts.filter(({ kind }) => kind === 'Conflict').length,
    claimMs: [...claims.values()].flat().map(({ tookMs }) => tookMs),
    waitMs: [...claims].flatMap(([run, [first]]) => {
      const begun = made.get(run);
      return begun === undefined || first === undefined ? [] : [first.atMs - begun];
    }),
  };
}

function changeOfHands(before: PodWrite | undefined, now: PodWrite): readonly string[] {
  if (now.owner === undefined || before?.owner === now.owner) return [];
  if (before?.owner !== undefined)
    return [`pod ${now.name} went from run ${before.owner} to run ${now.owner} at version ${now.version}`];
  if (before?.role !== 'active' || before.session === now.session) return [];
  return [`pod ${now.name} lingered for session ${before.session} and went to session ${now.session}`];
}

function secondPod(owner: string, last: ReadonlyMap<string, PodWrite>, now: PodWrite): readonly string[] {
  const own = [...last.values()].filter((pod) => pod.owner === owner && !pod.going);
  return own.length < 2
    ? []
    : [`run ${owner} had ${own.map(({ name }) => name).join(' and ')} at version ${now.version}`];
}

function commandsInNobodysPod(
  commands: readonly { readonly pod: string; readonly atMs: number }[],
  writes: readonly PodWrite[],
): readonly string[] {
  const claimed = new Map<string, number>();
  for (const { name, owner, atMs } of writes)
    if (owner !== undefined) claimed.set(name, Math.min(atMs, claimed.get(name) ?? atMs));
  return commands
    .filter(({ pod, atMs }) => atMs < (claimed.get(pod) ?? Number.POSITIVE_INFINITY))
    .map(({ pod }) => `a command ran in pod ${pod} before it was any run's`);
}

const byVersion = (a: PodWrite, b: PodWrite) => (a.version < b.version ? -1 : a.version > b.version ? 1 : 0);
