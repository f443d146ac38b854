import { describe, expect, it } from 'vitest';
import { reportMarkdown } from '../delivery/gate/markdown.ts';
import { ALL_LEVERS } from '../delivery/levers.ts';
import type { Ask } from '../delivery/port.ts';
import { loadDeliveryPrompts } from '../delivery/prompts/files.ts';
import type { DeliveryCase } from './delivery-case.ts';
import { loadCases } from './load-cases.ts';
import { runDelivery } from './run-delivery.ts';
import { hasWord, score, wantedEdits } from './score.ts';
import { adversaryAsk, seeded } from './scripted/adversary.ts';
import { perfectAsk } from './scripted/perfect.ts';

const prompts = await loadDeliveryPrompts();
const { delivery } = await loadCases();
const run = (one: DeliveryCase, askFor: (one: DeliveryCase) => Ask = perfectAsk) =>
  runDelivery(one, { prompts, levers: ALL_LEVERS, askFor, now: () => performance.now() });
const named = delivery.map((one) => [`${one.path}/${one.name}`, one] as const);
const of = (path: DeliveryCase['path']) => delivery.filter((one) => one.path === path);

describe('the cases', () => {
  it('are at least 40, of all four paths, and each path has one in which no model may be asked or nothing be changed', () => {
    expect(delivery.length).toBeGreaterThanOrEqual(40);
    for (const path of ['triage', 'explain', 'restructure', 'values'] as const)
      expect(of(path).length).toBeGreaterThanOrEqual(7);
    for (const path of ['triage', 'restructure', 'values'] as const)
      expect(of(path).filter(({ want }) => !want.asked).length).toBeGreaterThan(0);
    expect(new Set(of('triage').map(({ want }) => want.class))).toEqual(
      new Set(['mechanical', 'escalate', 'no_action']),
    );
    expect(delivery.map(({ name }) => name)).toContain('namespace-moved-under-a-bump');
  });

  it.each(named)('%s: the right answer gets full marks, on the path that the case is for', async (_, one) => {
    const what = await run(one);
    expect(score(one, what)).toMatchObject({ unsafe: [], faults: [], classified: true, full: true });
    const kind = what.delivery.outcome.kind;
    if (one.path === 'explain') expect(kind).toBe('Explained');
    if (one.want.class === 'mechanical') expect(kind).toBe('Push');
    if (one.want.class === 'escalate' && one.path !== 'explain') expect(kind).toBe('Escalate');
  });

  it.each(named)('%s: a plausible wrong answer comes to no harm', async (_, one) => {
    for (const seed of [1, 2, 3]) {
      const what = await run(one, (asked) => adversaryAsk(asked, seeded(seed)));
      expect(score(one, what).unsafe).toEqual([]);
    }
  });

  it.each(named)(
    '%s: what has to be mentioned is in the evidence, what must not be is not',
    async (_, one) => {
      const { delivery: found, asked } = await run(one);
      const evidence = [reportMarkdown(found.report), ...asked.map(({ user }) => user)].join('\n');
      const { mustMention, mustNotMention } = one.want;
      expect(mustMention.filter((word) => !evidence.toLowerCase().includes(word.toLowerCase()))).toEqual([]);
      expect(mustNotMention.filter((word) => hasWord(evidence, word))).toEqual([]);
      // A probe that a case without evidence would fail by saying what it is about tells nothing.
      expect(mustNotMention.filter((word) => hasWord(one.subject, word))).toEqual([]);
    },
  );

  it.each(of('triage').filter(({ want }) => want.edits.length > 0))(
    '$name: the edits that are right stand in the inventory',
    async (one) => {
      const what = await run(one);
      for (const { path, key, from } of wantedEdits(one, what)) {
        expect(what.asked[0]?.user).toContain(`FILE ${path} -- editable scalars`);
        expect(what.asked[0]?.user).toContain(`  ${key} = ${from}\n`);
      }
    },
  );

  it('pair explanations that differ only in whether the evidence has the reason', () => {
    const pairs = of('explain').filter(({ pair }) => pair !== undefined);
    expect(pairs.length).toBeGreaterThanOrEqual(6);
    for (const one of pairs) {
      const other = of('explain').find(({ name }) => name === one.pair);
      expect(other?.pair).toBe(one.name);
      expect({ ...other?.bump, before: other?.before, after: other?.after }).toEqual({
        ...one.bump,
        before: one.before,
        after: one.after,
      });
    }
    // Of each pair the case without the reason holds the other one's reason against whoever says it.
    const reasons = pairs.filter(
      ({ notes, silence, commits }) => notes ?? (silence === undefined && commits),
    );
    const probed = pairs.filter((one) => {
      const other = pairs.find(({ name }) => name === one.pair);
      return one.want.mustNotMention.some((word) => other?.want.mustMention.includes(word) === true);
    });
    expect(probed.length).toBe(pairs.length / 2);
    expect(reasons.length).toBeGreaterThanOrEqual(pairs.length / 2);
  });
});
