import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { anyValue, seeded, yamlFile } from '../../../test/builders/generated-yaml.ts';
import { aTree } from '../../../test/builders/tree.ts';
import { without } from '../levers.ts';
import { applyEdits } from './apply.ts';
import { inventory } from './inventory.ts';

const PATH = 'values.yaml';
const POLICY = { allow: ['**'], deny: [], scope: [PATH], evidence: '' };
const RUNS = 20_000;

/** All documents as one reader sees them, and what stands at a key of an edit. */
function read(text: string, version: '1.1' | '1.2') {
  const documents = parseAllDocuments(text, { version, logLevel: 'silent' }).map((document): unknown =>
    document.toJS(),
  );
  const at = (key: string): { holder: Record<string, unknown>; last: string } => {
    const [, number = '1', rest = key] = /^#(\d+)\.(.*)$/s.exec(key) ?? [];
    const segments = rest.split('.');
    const last = segments.pop() ?? '';
    const holder = segments.reduce(
      (around, segment) => holderOf(around[segment]),
      holderOf(documents[Number(number) - 1]),
    );
    return { holder, last };
  };
  return { documents, at };
}

const isHolder = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

function holderOf(value: unknown): Record<string, unknown> {
  if (!isHolder(value)) throw new Error(`nothing stands below ${String(value)}`);
  return value;
}

describe('20,000 generated files and edits', () => {
  it('an edit changes its scalar in its line, and both versions of YAML read it and nothing else anew', {
    timeout: 600_000,
  }, () => {
    const seen = { applied: 0, refused: 0, empty: 0 };
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (seed) => {
        const random = seeded(seed);
        const text = yamlFile(random);
        const listed = inventory(PATH, text);
        if (listed.kind !== 'Inventory') throw new Error(`${listed.reason}: ${JSON.stringify(text)}`);
        const scalar = listed.scalars[Math.floor(random() * listed.scalars.length)];
        if (scalar === undefined) {
          seen.empty += 1;
          return;
        }
        const { key, value: from, line } = scalar;
        const to = anyValue(random);
        const edit = { path: PATH, key, from, to, rationale: '' };
        const result = applyEdits(aTree({ [PATH]: text }), POLICY, [edit], {
          levers: without('corroboration'),
        });
        const [file] = result.files;
        if (file === undefined) {
          seen.refused += 1;
          expect(result.rejected).toHaveLength(1);
          expect(['TypeChange', 'Malformed']).toContain(result.rejected[0]?.reason);
          return;
        }
        seen.applied += 1;
        const after = new TextDecoder('utf-8', { ignoreBOM: true }).decode(file.bytes);
        const [lines, now] = [text.split('\n'), after.split('\n')];
        expect(now).toHaveLength(lines.length);
        for (const [index, old] of lines.entries()) if (index !== line - 1) expect(now[index]).toBe(old);
        const { before, after: token } = result.applied[0]!;
        expect(lines[line - 1]!.length - before.length).toBe(
          now[line - 1]!.length - token.length - (before === '' ? 1 : 0),
        );
        for (const version of ['1.1', '1.2'] as const) {
          const old = read(text, version);
          const wanted = read(after, version);
          const { holder, last } = wanted.at(key);
          const value = holder[last];
          expect(typeof value === 'string' ? value : String(value)).toBe(
            typeof value === 'boolean' ? to.toLowerCase() : to,
          );
          // With the old value back in its place nothing is left that differs.
          const { holder: oldHolder, last: oldLast } = old.at(key);
          holder[last] = oldHolder[oldLast];
          expect(wanted.documents).toEqual(old.documents);
        }
      }),
      { numRuns: RUNS, seed: 20_261_130 },
    );
    expect(seen.applied).toBeGreaterThan(RUNS / 2);
    expect(seen.refused).toBeGreaterThan(RUNS / 50);
    expect(seen.empty).toBeLessThan(RUNS / 10);
  });
});
