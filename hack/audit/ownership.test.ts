import { describe, expect, it } from 'vitest';
import { type AuditFact, factOf, type PodWrite } from './log.ts';
import { checkOwnership } from './ownership.ts';

const write = (version: number, rest: Partial<PodWrite> = {}): PodWrite => ({
  kind: 'PodWrite',
  version: BigInt(version),
  ...{ uid: 'p1', name: 'pod-1', owner: undefined, session: undefined, role: 'standby', going: false },
  ...{ atMs: version, tookMs: 5 },
  ...rest,
});
const owned = (version: number, owner: string, rest: Partial<PodWrite> = {}) =>
  write(version, { owner, role: 'active', ...rest });
const check = (...facts: readonly AuditFact[]) => checkOwnership(facts, new Set(['a', 'b'])).violations;

describe('the check of ownership', () => {
  it('is content with a pod that is claimed, used and deleted', () => {
    const facts: AuditFact[] = [
      { kind: 'RunMade', uid: 'a', atMs: 1 },
      write(1),
      owned(4, 'a'),
      { kind: 'Command', pod: 'pod-1', atMs: 5 },
      owned(6, 'a', { going: true }),
      { kind: 'Conflict', pod: 'pod-1' },
    ];
    const report = checkOwnership(facts, new Set(['a']));
    expect(report).toMatchObject({
      ...{ violations: [], pods: 1, writes: 3, commands: 1, conflicts: 1 },
      ...{ claimMs: [5], waitMs: [3] },
    });
  });

  it.each<[string, AuditFact[], RegExp]>([
    [
      'a pod that changes hands',
      [owned(1, 'a'), owned(2, 'b'), owned(3, 'b', { going: true })],
      /from run a to run b at version 2/,
    ],
    [
      'a run with two pods',
      [
        owned(1, 'a'),
        owned(2, 'a', { uid: 'p2', name: 'pod-2' }),
        owned(3, 'a', { going: true }),
        owned(4, 'a', { uid: 'p2', name: 'pod-2', going: true }),
      ],
      /run a had pod-1 and pod-2 at version 2/,
    ],
    ['a pod that is left behind', [owned(1, 'a')], /pod-1 of run a was never deleted/],
    ['an owner that is no run', [owned(1, 'x'), owned(2, 'x', { going: true })], /belongs to x/],
    [
      'a command in a pod that is nobody’s',
      [write(1), { kind: 'Command', pod: 'pod-1', atMs: 1 }],
      /a command ran in pod pod-1/,
    ],
    [
      'a lingering pod that another session gets',
      [
        owned(1, 'a', { session: 's' }),
        write(2, { role: 'active', session: 's' }),
        owned(3, 'b', { session: 't' }),
        owned(4, 'b', { going: true }),
      ],
      /lingered for session s and went to session t/,
    ],
  ])('finds %s', (_what, facts, expected) => {
    expect(check(...facts)).toEqual([expect.stringMatching(expected)]);
  });

  it('goes by versions, not by the order of the lines', () => {
    expect(check(owned(3, 'a', { going: true }), write(1), owned(2, 'a'))).toEqual([]);
  });

  it('lets the next run of a session have its lingering pod', () => {
    const lingering = write(2, { role: 'active', session: 's' });
    const facts = [owned(1, 'a', { session: 's' }), lingering, owned(3, 'b', { session: 's' })];
    expect(check(...facts, owned(4, 'b', { going: true }))).toEqual([]);
  });

  it('lets a run have a fresh pod once the lost one is going', () => {
    const second = { uid: 'p2', name: 'pod-2' };
    const facts = [owned(1, 'a'), owned(2, 'a', { going: true }), owned(3, 'a', second)];
    expect(check(...facts, owned(4, 'a', { ...second, going: true }))).toEqual([]);
  });
});

describe('a line of the audit log', () => {
  const event = (rest: object) =>
    JSON.stringify({
      verb: 'patch',
      requestReceivedTimestamp: '2026-01-01T00:00:00.000250Z',
      stageTimestamp: '2026-01-01T00:00:00.010500Z',
      responseStatus: { code: 200 },
      objectRef: { resource: 'pods', name: 'pod-1' },
      ...rest,
    });
  const pod = (labels: object, rest: object = {}) => ({
    kind: 'Pod',
    metadata: { uid: 'p1', name: 'pod-1', resourceVersion: '70', labels, ...rest },
  });

  it('is a pod’s write, with its owner and how long it took', () => {
    const labels = { 'hummingbird/role': 'active', 'hummingbird.dev/run': 'a' };
    expect(factOf(event({ responseObject: pod(labels) }))).toMatchObject({
      ...{ kind: 'PodWrite', version: 70n, owner: 'a', going: false },
      tookMs: expect.closeTo(10.25, 5),
    });
  });

  it.each([
    ['a pod that is being deleted', { responseObject: pod({}, { deletionTimestamp: 'x' }) }, { going: true }],
    ['a pod that is gone', { verb: 'delete', responseObject: pod({}) }, { going: true }],
    ['a lost race', { responseStatus: { code: 409 } }, { kind: 'Conflict' }],
    [
      'a command',
      { verb: 'get', objectRef: { resource: 'pods', subresource: 'exec', name: 'pod-1' } },
      { kind: 'Command' },
    ],
    [
      'a new run',
      {
        responseStatus: { code: 201 },
        objectRef: { resource: 'agentruns' },
        responseObject: { metadata: { uid: 'a', name: 'run' } },
      },
      { kind: 'RunMade', uid: 'a' },
    ],
  ])('is %s', (_what, rest, expected) => {
    expect(factOf(event(rest))).toMatchObject(expected);
  });

  it('says nothing when the request was refused', () => {
    expect(factOf(event({ responseStatus: { code: 403 } }))).toBeUndefined();
  });

  it('that is none is refused', () => {
    expect(() => factOf('{"half": ')).toThrow(SyntaxError);
  });
});
