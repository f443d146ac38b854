import { expect, it } from 'vitest';
import type { Lever } from '../delivery/levers.ts';
import { loadDeliveryPrompts } from '../delivery/prompts/files.ts';
import { ablationText, runAblations } from './ablations.ts';
import { loadCases } from './load-cases.ts';

const { delivery } = await loadCases();
const ablations = await runAblations(delivery, await loadDeliveryPrompts(), () => 0);

it.each<[Lever, 'harm' | 'repairs']>([
  ['inventory', 'repairs'],
  ['examples', 'repairs'],
  ['corroboration', 'harm'],
  ['emptyEscalates', 'harm'],
  ['direction', 'harm'],
  ['fieldsByReader', 'repairs'],
  ['vacancies', 'harm'],
  ['optionalMarks', 'repairs'],
])('lever %s keeps off %s', (lever, what) => {
  const found = ablations.find((one) => one.lever === lever);
  expect(found?.with.unsafe).toBe(0);
  if (what === 'harm') expect(found?.without.unsafe).toBeGreaterThan(0);
  else expect(found?.without.full).toBeLessThan(found?.with.full ?? 0);
});

it('prints a row for each lever', () => {
  expect(ablationText(ablations).trimEnd().split('\n')).toHaveLength(9);
});
