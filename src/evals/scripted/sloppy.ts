import { parse, stringify } from 'yaml';
import type { Lever } from '../../delivery/levers.ts';
import type { Answer, Ask } from '../../delivery/port.ts';
import type { Edit, Verdict } from '../../delivery/verdict.ts';
import type { DeliveryCase } from '../delivery-case.ts';
import { wantedEdits } from '../score.ts';
import { evalRepository } from '../world/repository.ts';
import { answered, perfectDocument, perfectVerdict, rightEdit } from './perfect.ts';
import { shownBlock, shownScalars } from './shown.ts';

type Question = Parameters<Ask>[0];

/**
 * Right but for the one way to err that a lever is there for: it errs where the lever's part of what it reads is gone,
 * and always where the lever is one of code, which has to catch it. Shows what is measured, not how a model behaves.
 */
export const sloppyAsk =
  (lever: Lever) =>
  (one: DeliveryCase): Ask => {
    const repository = evalRepository(one);
    const edits = wantedEdits(one, { repository }).map(rightEdit);
    return async (question) => {
      if (question.name === 'migration') return migration(lever, one, question);
      return answered(verdict(lever, one, edits, question));
    };
  };

function verdict(
  lever: Lever,
  one: DeliveryCase,
  right: readonly Edit[],
  { system, user }: Question,
): Verdict {
  const perfect = perfectVerdict(one, right);
  const mechanical = (edits: readonly Edit[]): Verdict => ({
    ...perfect,
    classification: 'mechanical',
    edits: [...edits],
    escalationReason: '',
  });
  switch (lever) {
    case 'inventory':
      // Without keys to copy it writes the last word of each, as a file shows it.
      return user.includes('editable scalars')
        ? perfect
        : { ...perfect, edits: right.map((edit) => ({ ...edit, key: edit.key.split('.').at(-1) ?? '' })) };
    case 'examples':
      return system.includes('and these are refused')
        ? perfect
        : {
            ...perfect,
            edits: right.map((edit) => ({ ...edit, from: `${edit.key.split('.').at(-1)}: ${edit.from}` })),
          };
    case 'corroboration':
      // "1.5 or later" becomes a release that nobody named.
      return one.name === 'coupled-pin-without-a-patch' ? mechanical(versionEdits(user, 'v1.5.0')) : perfect;
    case 'emptyEscalates':
      return one.path === 'triage' && one.want.class === 'escalate'
        ? mechanical([{ path: 'apps/none.yaml', key: 'a', from: 'b', to: 'c', rationale: 'It helps.' }])
        : perfect;
    case 'direction':
      return one.path === 'triage' && /moved/.test(one.name) ? mechanical(followingEdits(user)) : perfect;
    case 'fieldsByReader':
      return system.includes('Each field has a reader of its own')
        ? perfect
        : { ...perfect, reasoning: perfect.summary };
    case 'vacancies':
    case 'optionalMarks':
      return perfect;
  }
}

const versionEdits = (user: string, to: string): readonly Edit[] =>
  shownScalars(user)
    .filter(({ key, value }) => /\.tag$/.test(key) && /^v?\d/.test(value))
    .map(({ path, key, value }) => ({ path, key, from: value, to, rationale: 'The new version needs 1.5.' }));

/** Values that name the old place are made to name the new one. */
function followingEdits(user: string): readonly Edit[] {
  const move = /- Namespace: `([^`]+)` -> `([^`]+)`/.exec(user);
  const [, from = '', to = ''] = move ?? [];
  return shownScalars(user)
    .filter(({ key, value }) => key.includes('valuesObject') && from !== '' && value.includes(from))
    .map(({ path, key, value }) => ({
      path,
      key,
      from: value,
      to: value.replace(from, to),
      rationale: 'It follows the move.',
    }));
}

function migration(lever: Lever, one: DeliveryCase, { user }: Question): Answer {
  const right = perfectDocument(one, user);
  const document =
    lever === 'vacancies' && one.path === 'values' && !user.includes('## Free keys') && isRefused(user)
      ? withoutRefused(user)
      : lever === 'optionalMarks' && !user.includes('(optional, unset means')
        ? withDefaults(right, user)
        : right;
  return answered({ document, notes: 'Moved.' });
}

const isRefused = (user: string): boolean => user.includes('is not a field of the new schema');

/** A renamed key is taken for one that is gone. */
function withoutRefused(user: string): string {
  const document: unknown = parse(shownBlock(user, 'The values') ?? shownBlock(user, 'The document') ?? '{}');
  for (const [, at = ''] of user.matchAll(/^- (\S+) is not a field of the new schema$/gm))
    remove(document, at.split('.'));
  return stringify(document);
}

function remove(value: unknown, [key, ...rest]: readonly string[]): void {
  if (typeof value !== 'object' || value === null || key === undefined) return;
  if (rest.length === 0) Reflect.deleteProperty(value, key);
  else remove(Reflect.get(value, key), rest);
}

/** Fields at the top whose default the schema shows are filled in with it. */
function withDefaults(right: string, user: string): string {
  const document: unknown = parse(right);
  if (typeof document !== 'object' || document === null) return right;
  const schema = shownBlock(user, 'New schema') ?? '';
  const filled = Object.fromEntries(
    [...schema.matchAll(/^(\w+): string default=(\S+)/gm)].map(([, key = '', value = '']) => [key, value]),
  );
  return stringify({ ...filled, ...document });
}
