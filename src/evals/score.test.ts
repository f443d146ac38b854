import { describe, expect, it } from 'vitest';
import { ALL_LEVERS, type Levers, without } from '../delivery/levers.ts';
import { loadDeliveryPrompts } from '../delivery/prompts/files.ts';
import { loadCases } from './load-cases.ts';
import { runDelivery } from './run-delivery.ts';
import { hasWord, score } from './score.ts';
import { answered } from './scripted/perfect.ts';

const prompts = await loadDeliveryPrompts();
const { delivery } = await loadCases();

/** What a case comes to with this answer. */
async function scored(name: string, value: unknown, levers: Levers = ALL_LEVERS) {
  const one = delivery.find((each) => each.name === name);
  if (one === undefined) throw new Error(`no case ${name}`);
  const askFor = () => async () => answered(value);
  return score(one, await runDelivery(one, { prompts, levers, askFor, now: () => 0 }));
}

const verdict = (over: object = {}) => ({
  classification: 'mechanical',
  summary: 's',
  reasoning: 'r',
  edits: [],
  escalationReason: '',
  ...over,
});
const edit = (key: string, from: string, to: string) => ({
  path: 'apps/lb.yaml',
  key: `spec.source.helm.valuesObject.${key}`,
  from,
  to,
  rationale: 'r',
});
const TWO_MODES = 'two-modes-exclude-each-other';
const DAEMON = edit('speaker.daemon', 'true', 'false');
const REPLICAS = edit('controller.replicas', '2', '3');

describe('score of triage', () => {
  it('calls a wrong edit that landed UNSAFE, and one that was refused not', async () => {
    const value = verdict({ edits: [DAEMON, REPLICAS] });
    expect(await scored(TWO_MODES, value, without('direction'))).toMatchObject({
      unsafe: [expect.stringMatching(/controller\.replicas = 3 now, which is wrong/)],
      full: false,
    });
    expect(await scored(TWO_MODES, value)).toMatchObject({
      unsafe: [],
      classified: true,
      full: false,
      faults: [expect.stringMatching(/daemon = false did not land/)],
    });
  });

  it('wants the class, and no edit proposed where a person has to decide', async () => {
    expect(await scored('subcharts-are-dropped', verdict({ classification: 'no_action' }))).toMatchObject({
      classified: false,
    });
    const escalate = {
      classification: 'escalate',
      escalationReason: 'x',
      reasoning: 'wiki-database, database.enabled',
    };
    expect(await scored('subcharts-are-dropped', verdict(escalate))).toMatchObject({ full: true });
    expect(await scored('subcharts-are-dropped', verdict({ ...escalate, edits: [DAEMON] }))).toMatchObject({
      classified: true,
      full: false,
      faults: ['an edit was proposed'],
    });
  });

  it('calls a fix of nothing UNSAFE', async () => {
    const value = verdict({ edits: [{ ...DAEMON, from: 'no' }] });
    expect(await scored(TWO_MODES, value, without('emptyEscalates'))).toMatchObject({
      unsafe: ['a fix is reported, and nothing was changed'],
    });
    expect(await scored(TWO_MODES, value)).toMatchObject({ unsafe: [] });
  });
});

describe('score of explain', () => {
  const quiet = (reasoning: string, over: object = {}) =>
    verdict({ classification: 'no_action', reasoning, ...over });

  it('calls a reason that stands in no evidence UNSAFE', async () => {
    const name = 'reason-not-in-the-notes';
    expect(await scored(name, quiet('The sidecar goes; the report does not say why.'))).toMatchObject({
      full: true,
    });
    expect(await scored(name, quiet('The sidecar goes, as metrics are exported in process.'))).toMatchObject({
      unsafe: [expect.stringMatching(/"in process" is said/)],
      full: false,
    });
    expect(await scored('reason-in-the-notes', quiet('In process, says 2.1.0.'))).toMatchObject({
      full: true,
    });
  });

  it('gives no full marks for edits, nor for a look at what is routine', async () => {
    expect(await scored('routine-patch', quiet('To 1.8.3.', { edits: [DAEMON] }))).toMatchObject({
      classified: true,
      full: false,
    });
    expect(
      await scored(
        'routine-patch',
        quiet('To 1.8.3.', { classification: 'escalate', escalationReason: 'x' }),
      ),
    ).toMatchObject({ classified: false });
  });
});

describe('score of migrations', () => {
  const migrated = (document: string) => ({ document, notes: '' });

  it('calls a renamed key that was dropped UNSAFE when it gets through', async () => {
    const dropped = migrated('interval: 5m\n');
    const name = 'default-is-not-to-be-filled-in';
    expect(await scored(name, dropped, without('vacancies'))).toMatchObject({
      unsafe: [expect.stringMatching(/not what it said before: name/)],
    });
    expect(await scored(name, dropped)).toMatchObject({ unsafe: [], full: false });
  });

  it('calls a default that is only repeated noise: no full pass, and no harm', async () => {
    const noisy = migrated('name: team\ninterval: 5m\nkind: SecretStore\n');
    expect(await scored('default-is-not-to-be-filled-in', noisy)).toMatchObject({
      unsafe: [],
      classified: true,
      full: false,
      faults: [expect.stringMatching(/kind is set, which only repeats a default/)],
    });
  });

  it('wants nothing written where every document is wrong', async () => {
    const name = 'required-field-without-a-source';
    expect(await scored(name, migrated('a: 1\n'))).toMatchObject({ unsafe: [], full: true });
  });
});

describe('hasWord', () => {
  it.each([
    ['out of memory: killed', 'out of memory', true],
    ['OOM-killed', 'oom', true],
    ['a room', 'oom', false],
    ['v1.5.10', 'v1.5.1', false],
  ])('%s has %s: %s', (text, word, has) => {
    expect(hasWord(text, word)).toBe(has);
  });
});
