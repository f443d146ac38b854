import { describe, expect, it } from 'vitest';
import { locate } from './locate.ts';
import { planOf } from './plan.ts';

const PLAN = planOf({ web: { port: 1, host: 'a' } }, { web: { listen: 1, host: 'a' } });
const VALUES = 'web:\n  port: 1\n  host: a\n';
const MANIFEST =
  'kind: Application\nspec:\n  source:\n    helm:\n      valuesObject:\n        web:\n          port: 1\n';

describe('locate', () => {
  it('finds the one place that sets what changes', () => {
    expect(
      locate(
        [
          { path: 'v.yaml', text: VALUES },
          { path: 'o.yaml', text: 'web: {port: 2}\n' },
        ],
        PLAN,
      ),
    ).toMatchObject({
      kind: 'Found',
      candidate: { path: 'v.yaml' },
      anchor: { document: 0, prefix: [] },
    });
  });

  it('finds it inside a manifest and in a later document', () => {
    expect(locate([{ path: 'app.yaml', text: `a: 1\n---\n${MANIFEST}` }], PLAN)).toMatchObject({
      anchor: { document: 1, prefix: ['spec', 'source', 'helm', 'valuesObject'] },
    });
  });

  it.each([
    ['two places set it', [VALUES, VALUES], /2 places set them: f0.yaml, f1.yaml/],
    ['one file sets it twice', [`one:\n  web: {port: 1}\ntwo:\n  web: {port: 1}\n`], /2 places/],
    ['no file does', ['web: {port: 2}\n'], /no file sets all of them/],
    ['it is split over two files', [], /no file/],
    ['the file cannot be read alike by all', ['web: &x {port: 1}\nother: *x\n'], /f0.yaml has the alias \*x/],
  ])('finds none when %s', (_, texts, reason) => {
    const candidates = texts.map((text, at) => ({ path: `f${at}.yaml`, text }));
    expect(locate(candidates, PLAN)).toEqual({ kind: 'NotFound', reason: expect.stringMatching(reason) });
  });

  it('finds none for a plan that only adds', () => {
    const plan = planOf({ a: 1 }, { a: 1, b: 2 });
    expect(locate([{ path: 'v.yaml', text: 'a: 1\n' }], plan)).toMatchObject({
      kind: 'NotFound',
      reason: expect.stringMatching(/nothing says where/),
    });
  });
});
