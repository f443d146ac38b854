import { describe, expect, it } from 'vitest';
import { standbyLabels } from '../../../crds/labels.ts';
import { ANNOTATIONS, LABELS } from '../../../crds/meta.ts';
import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import type { Pod } from '../../../kube/kinds.ts';
import type { ProbeFinding, ProbeResult } from '../../../sandbox/port.ts';
import { egressCondition, reportOf } from './condition.ts';
import {
  afterProbe,
  dueProbes,
  EMPTY_LEDGER,
  type EndedProbe,
  type Ledger,
  type ProbeKind,
  tidied,
  withoutTerms,
} from './ledger.ts';
import { type Probeable, probeablePod, refOf } from './probeable.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const LATER = '2026-01-01T00:05:00.000Z';

const aPool = (period = '30s'): SandboxPool => ({
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'SandboxPool',
  metadata: { name: 'warm', namespace: 's', uid: 'pool' },
  spec: {
    replicas: 2,
    backend: 'Pod',
    pod: { image: 'i', workspace: { sizeLimit: '1Gi' } },
    claim: { timeout: '0s', createOnEmpty: false },
    maxActive: '30m',
    linger: { duration: '5m', max: 2 },
    egressProbe: { enabled: true, period, targets: [] },
  },
});

function aSandbox(name: string, annotations: Record<string, string> = {}, role = 'standby'): Probeable {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name, namespace: 's', uid: name, annotations },
      labels: { ...standbyLabels('warm'), [LABELS.role]: role },
    },
    spec: { containers: [{ name: 'sandbox' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
    },
  };
  return probeablePod(pod);
}
const proven = (name: string, until = LATER) => aSandbox(name, { [ANNOTATIONS.egressBlockedUntil]: until });

const HOLE: ProbeFinding = {
  subject: 'Kubelet',
  where: '10.0.0.1:10250/tcp',
  open: true,
  detail: 'connected',
};
const SHUT: ProbeFinding = { ...HOLE, open: false, detail: 'no answer' };
const blocked: ProbeResult = { kind: 'Probed', rounds: [[SHUT], [SHUT], [SHUT]] };
const open: ProbeResult = { kind: 'Probed', rounds: [[SHUT], [HOLE], [SHUT]] };
const cannot: ProbeResult = { kind: 'CannotProbe', why: 'its image has no python3' };

/** The ledger and the actions after one probe that took 5 s and ended at `ms`. */
function learned(
  ledger: Ledger,
  kind: ProbeKind,
  sandbox: Probeable,
  result: ProbeResult,
  { ms = 10_000, sandboxes = [sandbox] }: { ms?: number; sandboxes?: readonly Probeable[] } = {},
) {
  const ended: EndedProbe = { kind, sandbox, startedMs: ms - 5_000, result };
  return afterProbe(ledger, ended, { pool: aPool(), sandboxes, moment: { now: NOW, ms } });
}
const kinds = (actions: readonly { kind: string; sandbox: Probeable }[]) =>
  actions.map(({ kind, sandbox }) => `${kind} ${refOf(sandbox).name}`);
const names = (sandboxes: readonly Probeable[]) => sandboxes.map((sandbox) => refOf(sandbox).name);
const due = (ledger: Ledger, sandboxes: readonly Probeable[], ms = 100_000, pool = aPool()) => {
  const { proofs, watches } = dueProbes(ledger, pool, sandboxes, { now: NOW, ms });
  return { proofs: names(proofs), watches: names(watches) };
};

describe('what is probed', () => {
  it('a standby sandbox without proof, or with one that is over', () => {
    const over = proven('b', '2025-12-31T23:59:59Z');
    expect(due(EMPTY_LEDGER, [aSandbox('a'), over]).proofs).toEqual(['a', 'b']);
  });
  it('no sandbox that a run has: what it answers is the run’s word', () => {
    expect(due(EMPTY_LEDGER, [aSandbox('a', {}, 'active')])).toEqual({ proofs: [], watches: [] });
  });
  it('a claimed one that waits for its proof', () => {
    const made = aSandbox('a', { [ANNOTATIONS.egressProbe]: 'awaited' }, 'active');
    expect(due(EMPTY_LEDGER, [made]).proofs).toEqual(['a']);
  });
  it('none that does not run', () => {
    expect(due(EMPTY_LEDGER, [{ ...aSandbox('a'), usable: false }]).proofs).toEqual([]);
  });
  it('one that was open again after a second, and seldom once it is open for a minute', () => {
    const a = aSandbox('a');
    let { ledger } = learned(EMPTY_LEDGER, 'Proof', a, open, { ms: 10_000 });
    expect(due(ledger, [a], 10_900).proofs).toEqual([]);
    expect(due(ledger, [a], 11_000).proofs).toEqual(['a']);
    ledger = learned(ledger, 'Proof', a, open, { ms: 80_000 }).ledger;
    expect(due(ledger, [a], 90_000).proofs).toEqual([]);
    expect(due(ledger, [a], 95_000).proofs).toEqual(['a']);
  });
  it('one of the proven every 3 s, each in turn', () => {
    const all = [proven('a'), proven('b'), proven('c')];
    const { ledger } = learned(EMPTY_LEDGER, 'Watch', proven('a'), blocked, { sandboxes: all });
    expect(due(ledger, all).watches).toEqual(['b']);
    expect(due({ ...ledger, lastWatchMs: 98_000 }, all).watches).toEqual([]);
    expect(due({ ...ledger, lastWatchMs: 97_000 }, all).watches).toEqual(['b']);
  });
  it('as many at once as it takes to see each in a period', () => {
    const all = Array.from({ length: 40 }, (_, at) => proven(`p${at}`));
    expect(due(EMPTY_LEDGER, all).watches).toHaveLength(4);
    expect(due(EMPTY_LEDGER, all, 100_000, aPool('1s')).watches).toHaveLength(40);
    expect(due(EMPTY_LEDGER, all, 100_000, aPool('10m')).watches).toHaveLength(1);
  });
  it('a standby sandbox of a time without probe in full, not by one round', () => {
    const old = aSandbox('old', { [ANNOTATIONS.egressProbe]: 'disabled' });
    expect(due(EMPTY_LEDGER, [old])).toEqual({ proofs: ['old'], watches: [] });
  });
  it('and a standby sandbox of a time without probe loses its leave', () => {
    const old = aSandbox('old', { [ANNOTATIONS.egressProbe]: 'disabled' });
    const run = aSandbox('run', { [ANNOTATIONS.egressProbe]: 'disabled' }, 'active');
    expect(names(withoutTerms([old, run, proven('a')]))).toEqual(['old']);
  });
});

describe('a proof', () => {
  const a = aSandbox('a');
  it('of three blocked rounds makes a sandbox claimable for five minutes', () => {
    expect(learned(EMPTY_LEDGER, 'Proof', a, blocked).actions).toEqual([
      { kind: 'Prove', sandbox: a, until: new Date(LATER) },
    ]);
  });
  it('with one open round makes nothing claimable', () => {
    expect(learned(EMPTY_LEDGER, 'Proof', a, open).actions).toEqual([]);
  });
  it('that cannot be had makes nothing claimable', () => {
    expect(learned(EMPTY_LEDGER, 'Proof', a, cannot).actions).toEqual([]);
  });
  it('does not count when the sandbox was claimed or deleted meanwhile', () => {
    const claimed = aSandbox('a', {}, 'active');
    expect(learned(EMPTY_LEDGER, 'Proof', a, blocked, { sandboxes: [claimed] }).actions).toEqual([]);
    expect(learned(EMPTY_LEDGER, 'Proof', a, blocked, { sandboxes: [] }).actions).toEqual([]);
  });
});

describe('a sandbox that was proven and is open', () => {
  const all = [proven('a'), proven('b'), aSandbox('c')];
  const [a = proven('a')] = all;
  const found = learned(EMPTY_LEDGER, 'Watch', a, open, { ms: 20_000, sandboxes: all });

  it('is marked, and every other proof of the pool is withdrawn', () => {
    expect(kinds(found.actions)).toEqual(['MarkOpen a', 'Withdraw b']);
  });
  it('is not believed when a run has it by now', () => {
    const claimed = aSandbox('a', { [ANNOTATIONS.egressBlockedUntil]: LATER }, 'active');
    expect(learned(EMPTY_LEDGER, 'Watch', a, open, { sandboxes: [claimed] }).actions).toEqual([]);
  });
  it('keeps a proof from counting that began before', () => {
    const late = learned(found.ledger, 'Proof', aSandbox('c'), blocked, { ms: 22_000 });
    expect(late.actions).toEqual([]);
    expect(late.ledger.breach).toBeDefined();
  });
  it('is replaced when the network is shut again, and the others are proven anew', () => {
    const b = learned(found.ledger, 'Proof', aSandbox('b'), blocked, { ms: 30_000 });
    expect(kinds(b.actions)).toEqual(['Prove b']);
    expect(b.ledger.breach).toBeUndefined();
    const wasOpen = aSandbox('a', { [ANNOTATIONS.egressOpen]: 'then Kubelet' });
    expect(learned(b.ledger, 'Proof', wasOpen, blocked, { ms: 31_000 }).actions).toEqual([
      { kind: 'Replace', sandbox: wasOpen, reason: 'its network was open: then Kubelet' },
    ]);
  });
  it('is replaced when another one is proven, even if it is still open itself', () => {
    const sandboxes = [aSandbox('b'), aSandbox('a', { [ANNOTATIONS.egressOpen]: 'then Kubelet' })];
    const b = learned(found.ledger, 'Proof', aSandbox('b'), blocked, { ms: 30_000, sandboxes });
    expect(kinds(b.actions)).toEqual(['Replace a', 'Prove b']);
  });
});

describe('a sandbox that never was shut', () => {
  const all = [aSandbox('a'), proven('b')];
  const [a = aSandbox('a')] = all;
  const opened = learned(EMPTY_LEDGER, 'Proof', a, open, { ms: 10_000, sandboxes: all }).ledger;
  const late = { ms: 310_000, sandboxes: all };

  it('is replaced after five minutes when others of its pool are shut', () => {
    const other = learned(opened, 'Watch', proven('b'), blocked, { ms: 300_000, sandboxes: all }).ledger;
    expect(kinds(learned(other, 'Proof', a, open, late).actions)).toEqual(['Replace a']);
    expect(learned(other, 'Proof', a, open, { ...late, ms: 309_000 }).actions).toEqual([]);
  });
  it('stays when none of its pool is: another one would be open as well', () => {
    expect(learned(opened, 'Proof', a, open, late).actions).toEqual([]);
  });
});

describe('a watch that finds all blocked', () => {
  it('renews a proof that is half over, and only then', () => {
    const half = proven('a', '2026-01-01T00:02:29Z');
    expect(kinds(learned(EMPTY_LEDGER, 'Watch', half, blocked).actions)).toEqual(['Prove a']);
    const fresh = proven('a', '2026-01-01T00:02:31Z');
    expect(learned(EMPTY_LEDGER, 'Watch', fresh, blocked).actions).toEqual([]);
  });
  it('does not give a proof back that was withdrawn meanwhile', () => {
    const options = { sandboxes: [aSandbox('a')] };
    expect(learned(EMPTY_LEDGER, 'Watch', proven('a'), blocked, options).actions).toEqual([]);
  });
});

describe('the condition EgressBlocked', () => {
  const said = (ledger: Ledger, { ms = 10_000, marked = 0 } = {}) => {
    const { status, reason, message } = egressCondition(
      aPool(),
      reportOf(ledger, new Map([['a', 'pod-a']]), ms),
      marked,
    );
    return [status, reason, message];
  };
  const a = aSandbox('a');

  it('is Unknown until something is known', () => {
    expect(said(EMPTY_LEDGER)).toEqual(['Unknown', 'Probing', 'no sandbox has been proven yet']);
  });
  it('is True after a proof, also while every proven sandbox is claimed', () => {
    const { ledger } = learned(EMPTY_LEDGER, 'Proof', a, blocked);
    expect(said(ledger)[0]).toBe('True');
    expect(said(tidied(ledger, []))[0]).toBe('True');
    expect(said(tidied(ledger, []), { ms: 400_000 })[0]).toBe('Unknown');
  });
  it('is True for a new leader where a sandbox carries a proof', () => {
    expect(said(EMPTY_LEDGER, { marked: 1 })[0]).toBe('True');
  });
  it('is False at once when a proven sandbox is open, and says what was reached', () => {
    const { ledger } = learned(EMPTY_LEDGER, 'Watch', proven('a'), open);
    expect(said(ledger, { marked: 3 })).toEqual([
      'False',
      'EgressOpen',
      'sandbox a is not isolated: Kubelet 10.0.0.1:10250/tcp: connected; no sandbox is handed out',
    ]);
  });
  it('is False when new sandboxes stay open, not while the network plugin may still be on its way', () => {
    const early = learned(EMPTY_LEDGER, 'Proof', a, open, { ms: 10_000 }).ledger;
    expect(said(early)[0]).toBe('Unknown');
    const late = learned(early, 'Proof', a, open, { ms: 18_000 }).ledger;
    expect(said(late).slice(0, 2)).toEqual(['False', 'EgressOpen']);
    expect(said(late)[2]).toContain('pod-a');
  });
  it('says why nothing can be proven', () => {
    const { ledger } = learned(EMPTY_LEDGER, 'Proof', a, cannot);
    expect(said(ledger)).toEqual([
      'Unknown',
      'CannotProbe',
      'no sandbox can be proven: its image has no python3',
    ]);
  });
  it('says that a pool without probe trusts its cluster', () => {
    const pool = aPool();
    const trusting = {
      ...pool,
      spec: { ...pool.spec, egressProbe: { ...pool.spec.egressProbe, enabled: false } },
    };
    expect(egressCondition(trusting, undefined, 5)).toMatchObject({
      status: 'Unknown',
      reason: 'ProbeDisabled',
    });
  });
});
