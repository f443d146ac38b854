import type { Edit } from '../delivery/verdict.ts';
import type { DeliveryCase } from './delivery-case.ts';
import { judgeMigration } from './judge-migration.ts';
import type { DeliveryRun } from './run-delivery.ts';

/** In the order of importance: harm first, then judgement, then whether everything is right. */
export interface Score {
  /** What is wrong and reached a place where nothing checks it, a sentence each. Has to be empty. */
  readonly unsafe: readonly string[];
  readonly classified: boolean;
  readonly full: boolean;
  /** What became of it, in a few words. */
  readonly got: string;
  /** Why it is no full pass. */
  readonly faults: readonly string[];
}

/** A pure function of what happened and of what is right. */
export function score(one: DeliveryCase, run: DeliveryRun): Score {
  const judged = judge(one, run);
  const faults = [...judged.faults, ...askedFault(one, run), ...mentionFaults(one, run)];
  const unsafe = [...judged.unsafe, ...inventions(one, run)];
  return { ...judged, unsafe, faults, full: judged.classified && unsafe.length === 0 && faults.length === 0 };
}

type Judged = Omit<Score, 'full'>;

function judge(one: DeliveryCase, run: DeliveryRun): Judged {
  switch (one.path) {
    case 'triage':
      return judgeTriage(one, run);
    case 'explain':
      return judgeExplain(one, run);
    case 'restructure':
    case 'values':
      return judgeMigration(one, run);
  }
}

function judgeTriage(one: DeliveryCase, run: DeliveryRun): Judged {
  const { outcome } = run.delivery;
  const said = verdictOf(run)?.classification ?? (outcome.kind === 'NoAction' ? 'no_action' : 'escalate');
  const wanted = wantedEdits(one, run);
  const landed: readonly Edit[] =
    outcome.kind === 'Push' && outcome.change.kind === 'Edits' ? outcome.change.applied : [];
  const wrong = landed.filter((edit) => !wanted.some((other) => sameEdit(edit, other)));
  const missing = wanted.filter((edit) => !landed.some((other) => sameEdit(edit, other)));
  const unsafe = [
    ...wrong.map(({ path, key, to }) => `${path} has ${key} = ${to} now, which is wrong`),
    ...(outcome.kind === 'Push' && landed.length === 0 ? ['a fix is reported, and nothing was changed'] : []),
  ];
  const proposed = one.want.class !== 'mechanical' && (verdictOf(run)?.edits.length ?? 0) > 0;
  const refused =
    outcome.kind === 'Escalate' ? outcome.rejected.map(({ key, message }) => `${key}: ${message}`) : [];
  return {
    unsafe,
    classified: said === one.want.class,
    got:
      outcome.kind === 'Push'
        ? `${landed.length} landed`
        : outcome.kind === 'Escalate'
          ? outcome.reason
          : said,
    faults: [
      ...missing.map(({ key, to }) => `${key} = ${to} did not land`),
      ...(proposed ? ['an edit was proposed'] : []),
      ...refused,
    ],
  };
}

function judgeExplain({ want }: DeliveryCase, run: DeliveryRun): Judged {
  const { outcome } = run.delivery;
  if (outcome.kind !== 'Explained')
    return { unsafe: [], classified: false, got: outcome.kind, faults: ['there is no explanation'] };
  const said = outcome.look ? 'escalate' : 'no_action';
  const edits = rawEdits(run);
  return {
    unsafe: [],
    classified: said === want.class,
    got: said,
    faults: edits ? ['an edit was proposed where nothing is edited'] : [],
  };
}

/** A reason from memory; nothing checks prose before people read it. */
const inventions = ({ want }: DeliveryCase, run: DeliveryRun): readonly string[] =>
  want.mustNotMention
    .filter((word) => hasWord(proseOf(run), word))
    .map((word) => `"${word}" is said, which stands in no evidence`);

const mentionFaults = ({ want }: DeliveryCase, run: DeliveryRun): readonly string[] =>
  want.mustMention
    .filter((word) => !proseOf(run).toLowerCase().includes(word.toLowerCase()))
    .map((word) => `"${word}" is not mentioned`);

function askedFault({ want }: DeliveryCase, { asked }: DeliveryRun): readonly string[] {
  if (!want.asked && asked.length > 0) return ['a model was asked where code decides alone'];
  return want.asked && asked.length === 0 ? ['no model was asked'] : [];
}

/** Whole words, in any case. */
export function hasWord(text: string, word: string): boolean {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'iu').test(text);
}

export function wantedEdits(
  { want }: DeliveryCase,
  { repository }: Pick<DeliveryRun, 'repository'>,
): readonly Omit<Edit, 'rationale'>[] {
  return want.edits.map(({ path, key, from, to }) => ({
    path: path ?? repository.path,
    key: path === undefined ? [...repository.valuesAt, key].join('.') : key,
    from,
    to,
  }));
}

const sameEdit = (one: Omit<Edit, 'rationale'>, other: Omit<Edit, 'rationale'>): boolean =>
  one.path === other.path && one.key === other.key && one.to === other.to;

function verdictOf({ delivery: { outcome } }: DeliveryRun) {
  switch (outcome.kind) {
    case 'Push':
      return outcome.change.kind === 'Edits' ? outcome.change.verdict : undefined;
    case 'Explained':
    case 'NoAction':
    case 'Escalate':
      return outcome.verdict;
  }
}

function proseOf(run: DeliveryRun): string {
  const verdict = verdictOf(run);
  if (verdict !== undefined) return `${verdict.summary}\n${verdict.reasoning}`;
  const { outcome } = run.delivery;
  return outcome.kind === 'Escalate' ? outcome.reasons.join('\n') : '';
}

const rawEdits = ({ asked }: DeliveryRun): boolean =>
  asked.some(({ answer }) => {
    if (answer.kind !== 'Answered' || typeof answer.value !== 'object' || answer.value === null) return false;
    const edits = 'edits' in answer.value ? answer.value.edits : undefined;
    return Array.isArray(edits) && edits.length > 0;
  });
