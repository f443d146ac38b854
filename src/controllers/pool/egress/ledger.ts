import { parseDuration } from '../../../crds/duration.ts';
import { carriesProof, PROBE_DISABLED } from '../../../crds/egress.ts';
import { ANNOTATIONS, LABELS } from '../../../crds/meta.ts';
import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import type { ProbeFinding, ProbeResult } from '../../../sandbox/port.ts';
import { isUntouched, type Probeable, uidOf } from './probeable.ts';
import { inWords } from './words.ts';

/** What is known of a pool's sandboxes beside their marks. Times are those of a monotonic clock. */
export interface Ledger {
  readonly last: ReadonlyMap<string, LastProbe>;
  readonly lastWatchMs: number;
  /** Begin of the last proof that succeeded. */
  readonly provenAtMs?: number;
  /** A sandbox that was proven shut was found open, and none has been proven since. */
  readonly breach?: { readonly atMs: number; readonly sandbox: string; readonly finding: ProbeFinding };
}

type LastProbe = { readonly endedMs: number } & (
  | { readonly kind: 'Blocked' }
  | { readonly kind: 'Open'; readonly sinceMs: number; readonly finding: ProbeFinding }
  | { readonly kind: 'CannotProbe'; readonly why: string }
);

export const EMPTY_LEDGER: Ledger = { last: new Map(), lastWatchMs: Number.NEGATIVE_INFINITY };

/** Proof: three rounds over 5 s make a sandbox claimable. Watch: one round shows that it still holds. */
export type ProbeKind = 'Proof' | 'Watch';
export const PROOF_ROUNDS = 3;
export const PROOF_GAP_MS = 2_500;

/** With a probe of some 2 s, enforcement that goes is seen well within 10 s. */
const WATCH_EVERY_MS = 3_000;
/** A network plugin may shut a pod only some seconds after its start. */
const AGAIN_MS = 1_000;
/** What does not change by itself is not asked for all the time. */
const AGAIN_LATER_MS = 15_000;
const IMPATIENT_MS = 60_000;
/** A node whose network plugin has failed: another one may be luckier. */
const STUCK_MS = 5 * 60_000;
/** A proof holds so long when nobody renews it, so that no claim rests on a probe that has stopped. */
const VALID_MS = 5 * 60_000;

export interface Moment {
  readonly now: Date;
  readonly ms: number;
}

/** What to probe now, each sandbox once at a time. Pure. */
export function dueProbes(
  { last, lastWatchMs }: Ledger,
  pool: SandboxPool,
  sandboxes: readonly Probeable[],
  { now, ms }: Moment,
): { readonly proofs: readonly Probeable[]; readonly watches: readonly Probeable[] } {
  const candidates = sandboxes.filter(({ object, usable }) => usable && isUntouched(object));
  const proven = candidates.filter(({ object }) => carriesProof(object, now));
  const proofs = candidates.filter(
    (sandbox) => !proven.includes(sandbox) && ms >= againAt(last.get(uidOf(sandbox))),
  );
  if (ms - lastWatchMs < WATCH_EVERY_MS) return { proofs, watches: [] };
  // Each in turn: all of them once in a period, one of them every time.
  const share = WATCH_EVERY_MS / Math.max(WATCH_EVERY_MS, parseDuration(pool.spec.egressProbe.period));
  const endOf = (sandbox: Probeable) => last.get(uidOf(sandbox))?.endedMs ?? 0;
  const watches = proven
    .toSorted((a, b) => endOf(a) - endOf(b))
    .slice(0, Math.max(1, Math.ceil(proven.length * share)));
  return { proofs, watches };
}

function againAt(last: LastProbe | undefined): number {
  if (last === undefined || last.kind === 'Blocked') return Number.NEGATIVE_INFINITY;
  const soon = last.kind === 'Open' && last.endedMs - last.sinceMs < IMPATIENT_MS;
  return last.endedMs + (soon ? AGAIN_MS : AGAIN_LATER_MS);
}

/** Sandboxes from a time when the pool had no probe: from now on they need a proof as well. */
export const withoutTerms = (sandboxes: readonly Probeable[]): readonly Probeable[] =>
  sandboxes.filter(
    ({ object: { metadata } }) =>
      metadata.labels?.[LABELS.role] === 'standby' &&
      metadata.annotations?.[ANNOTATIONS.egressProbe] === PROBE_DISABLED,
  );

export type EgressAction =
  /** It may be handed out until then. */
  | { readonly kind: 'Prove'; readonly sandbox: Probeable; readonly until: Date }
  /** It was proven and is open: never handed out again. */
  | { readonly kind: 'MarkOpen'; readonly sandbox: Probeable; readonly finding: ProbeFinding }
  /** Another one of its pool is open: it needs a new proof. */
  | { readonly kind: 'Withdraw'; readonly sandbox: Probeable }
  /** It was open once and others are shut, or it never was shut. */
  | { readonly kind: 'Replace'; readonly sandbox: Probeable; readonly reason: string };

export interface EndedProbe {
  readonly kind: ProbeKind;
  readonly sandbox: Probeable;
  readonly startedMs: number;
  readonly result: ProbeResult;
}

/** What a probe has taught, and what follows. `sandboxes` as they are now. Pure. */
export function afterProbe(
  ledger: Ledger,
  { kind, sandbox, startedMs, result }: EndedProbe,
  { pool, sandboxes, moment }: { pool: SandboxPool; sandboxes: readonly Probeable[]; moment: Moment },
): { readonly ledger: Ledger; readonly actions: readonly EgressAction[] } {
  const { now, ms } = moment;
  const noted = (probe: LastProbe): Ledger => ({
    ...ledger,
    last: new Map(ledger.last).set(uidOf(sandbox), probe),
  });
  const current = sandboxes.find((other) => uidOf(other) === uidOf(sandbox));
  // A run has it by now, and may have changed what it answers.
  if (current === undefined || !isUntouched(current.object)) return { ledger, actions: [] };
  if (result.kind === 'CannotProbe')
    return { ledger: noted({ kind: 'CannotProbe', endedMs: ms, why: result.why }), actions: [] };
  const finding = result.rounds.flat().find(({ open }) => open);
  if (finding !== undefined) {
    const before = ledger.last.get(uidOf(sandbox));
    const sinceMs = before?.kind === 'Open' ? before.sinceMs : ms;
    const open = noted({ kind: 'Open', endedMs: ms, sinceMs, finding });
    if (kind === 'Proof') {
      const reason = `its network stayed open, while others of its pool are shut: ${inWords(finding)}`;
      const stuck = ms - sinceMs >= STUCK_MS && othersAreShut(ledger, uidOf(sandbox), sinceMs);
      return { ledger: open, actions: stuck ? [{ kind: 'Replace', sandbox: current, reason }] : [] };
    }
    const others = sandboxes.filter(
      (other) => uidOf(other) !== uidOf(sandbox) && isUntouched(other.object) && isMarked(other),
    );
    return {
      ledger: { ...open, breach: { atMs: ms, sandbox: sandbox.object.metadata.name ?? '', finding } },
      actions: [
        { kind: 'MarkOpen', sandbox: current, finding },
        ...others.map((other): EgressAction => ({ kind: 'Withdraw', sandbox: other })),
      ],
    };
  }
  const until = new Date(now.getTime() + validMs(pool));
  const blocked = noted({ kind: 'Blocked', endedMs: ms });
  if (kind === 'Watch') {
    const left =
      Date.parse(current.object.metadata.annotations?.[ANNOTATIONS.egressBlockedUntil] ?? '') - now.getTime();
    // Withdrawn meanwhile: one round is no proof.
    if (!(left > 0 && left < validMs(pool) / 2)) return { ledger: blocked, actions: [] };
    return { ledger: blocked, actions: [{ kind: 'Prove', sandbox: current, until }] };
  }
  // It began while another one was still open.
  if (ledger.breach !== undefined && startedMs < ledger.breach.atMs) return { ledger: blocked, actions: [] };
  const { breach: _, ...shut } = { ...blocked, provenAtMs: startedMs };
  return { ledger: shut, actions: [...replaceOpened(sandboxes), ...prove(current, until)] };
}

/** Enforcement is back: none of those that were open for a time is kept, whether it is shut by now or not. */
const replaceOpened = (sandboxes: readonly Probeable[]): readonly EgressAction[] =>
  sandboxes.flatMap((sandbox) => {
    const wasOpen = openMark(sandbox);
    return wasOpen === undefined || !isUntouched(sandbox.object)
      ? []
      : [{ kind: 'Replace', sandbox, reason: `its network was open: ${wasOpen}` }];
  });

const prove = (sandbox: Probeable, until: Date): readonly EgressAction[] =>
  openMark(sandbox) === undefined ? [{ kind: 'Prove', sandbox, until }] : [];

const openMark = ({ object }: Probeable): string | undefined =>
  object.metadata.annotations?.[ANNOTATIONS.egressOpen];

const othersAreShut = ({ last }: Ledger, uid: string, sinceMs: number): boolean =>
  [...last].some(([other, probe]) => other !== uid && probe.kind === 'Blocked' && probe.endedMs > sinceMs);

const isMarked = ({ object }: Probeable): boolean =>
  object.metadata.annotations?.[ANNOTATIONS.egressBlockedUntil] !== undefined;

const validMs = (pool: SandboxPool): number =>
  Math.max(VALID_MS, 3 * parseDuration(pool.spec.egressProbe.period));

/** Without what is known of sandboxes that a run has, or that exist no more. */
export function tidied(ledger: Ledger, sandboxes: readonly Probeable[]): Ledger {
  const present = new Set(sandboxes.filter(({ object }) => isUntouched(object)).map(uidOf));
  if ([...ledger.last.keys()].every((uid) => present.has(uid))) return ledger;
  return { ...ledger, last: new Map([...ledger.last].filter(([uid]) => present.has(uid))) };
}
