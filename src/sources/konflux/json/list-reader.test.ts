import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonError, ListReader } from './list-reader.ts';

interface Read {
  readonly items: readonly string[];
  readonly continueToken?: string | undefined;
  readonly oversized?: number;
  readonly error?: string;
}

/** Reads a text that is cut into pieces of these sizes, again and again. */
function read(json: string | Uint8Array, sizes: readonly number[] = [1e9], maxItemBytes?: number): Read {
  const bytes = Buffer.from(json);
  const reader = new ListReader(maxItemBytes === undefined ? {} : { maxItemBytes });
  const items: string[] = [];
  try {
    for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
      const size = sizes[piece % sizes.length] ?? 1;
      for (const { json, parts } of reader.push(bytes.subarray(at, at + size))) {
        expect(Buffer.concat(parts).equals(json)).toBe(true);
        items.push(Buffer.from(json).toString());
      }
      at += size;
    }
    const { continueToken, oversized } = reader.end();
    return { items, continueToken, oversized };
  } catch (error) {
    if (error instanceof JsonError) return { items, error: error.message };
    throw error;
  }
}

const parsed = (all: readonly string[]): unknown[] => all.map((item) => JSON.parse(item));

const chunks = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });
const list = fc.record(
  {
    kind: fc.constant('List'),
    metadata: fc.record({ continue: fc.string({ unit: 'binary' }), resourceVersion: fc.string() }),
    items: fc.array(
      fc.oneof({ weight: 4, arbitrary: fc.object() }, { weight: 1, arbitrary: fc.jsonValue() }),
    ),
    extra: fc.jsonValue(),
  },
  { requiredKeys: ['items'] },
);
/** The same with its names in any order, written tightly or over many lines. */
const written = fc
  .tuple(
    list,
    fc.constantFrom(undefined, 1, '\t', '\r\n '),
    fc.array(fc.nat(), { minLength: 4, maxLength: 4 }),
  )
  .map(([value, indent, order]) => {
    const names = Object.entries(value).toSorted((_one, _other) => (order.pop() ?? 0) - (order[0] ?? 0));
    return JSON.stringify(Object.fromEntries(names), undefined, indent);
  });

describe('a list in pieces', () => {
  it('has the items of JSON.parse, wherever it is cut', () => {
    fc.assert(
      fc.property(written, chunks, (json, sizes) => {
        const whole = JSON.parse(json);
        const { items, continueToken, error } = read(json, sizes);
        expect(error).toBeUndefined();
        expect(parsed(items)).toEqual(whole.items);
        expect(continueToken).toBe(whole.metadata?.continue || undefined);
      }),
      { numRuns: 200 },
    );
  });

  it('is refused where JSON.parse refuses it, and is read where it does not', () => {
    const damage = fc.tuple(
      fc.nat(),
      fc.constantFrom('', '"', '\\', '{', ']', ',', ':', '0', '-', 'e', '\u0001', 'null', '\u{1f426}'),
      fc.nat(3),
    );
    fc.assert(
      fc.property(
        written,
        fc.array(damage, { minLength: 1, maxLength: 3 }),
        chunks,
        (json, damages, sizes) => {
          const damaged = damages.reduce((text, [place, by, less]) => {
            const at = place % (text.length + 1);
            return text.slice(0, at) + by + text.slice(at + less);
          }, json);
          let whole: unknown;
          try {
            whole = JSON.parse(damaged);
          } catch {
            // Cutting may split a pair of surrogates, which then is replaced: only what is no JSON at all is asked here.
            expect(read(damaged, sizes).error).toBeDefined();
            return;
          }
          const { items, error } = read(damaged, sizes);
          const given = typeof whole === 'object' && whole !== null && 'items' in whole ? whole.items : '';
          if (Array.isArray(given) && error === undefined) {
            expect(parsed(items)).toEqual(JSON.parse(Buffer.from(damaged).toString()).items);
            return;
          }
          if (given === null) return;
          expect(Array.isArray(given)).toBe(false);
          expect(error).toMatch(/no list|no items|begins with/);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('does not depend on how any bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 60 }),
          written.map((json) => Buffer.from(json)),
        ),
        chunks,
        (bytes, sizes) => {
          const cut = read(bytes, sizes);
          const whole = read(bytes);
          // What is wrong is the same; where it is said to be depends on the piece.
          expect({ ...cut, error: cut.error?.slice(0, 12) }).toEqual({
            ...whole,
            error: whole.error?.slice(0, 12),
          });
        },
      ),
    );
  });

  it('keeps characters whole whose bytes come one by one', () => {
    const json = '{"items":[{"a":"\u{1f426} \\u00e9 \\"q\\" \\\\"},{"b":"süß"}],"metadata":{"continue":"é"}}';
    const { items, continueToken } = read(json, [1]);
    expect(parsed(items)).toEqual([{ a: '\u{1f426} é "q" \\' }, { b: 'süß' }]);
    expect(continueToken).toBe('é');
  });

  it.each([
    ['before the items', '{"metadata":{"continue":"t"},"items":[{}]}'],
    ['after the items', '{"items":[{}],"metadata":{"resourceVersion":"1","continue":"t"}}'],
    [
      'among other things',
      '{"kind":"List","metadata":{"a":{"continue":"no"},"continue":"t"},"items":[{"metadata":{"continue":"no"}}]}',
    ],
  ])('has its continue token %s', (_where, json) => {
    expect(read(json, [3]).continueToken).toBe('t');
  });

  it.each([
    ['{"items":[],"metadata":{"continue":""}}'],
    ['{"items":[],"metadata":{"continue":null}}'],
    ['{"items":[],"metadata":null}'],
    ['{"items":null}'],
    [' {"items" : [ ] } \n'],
  ])('is complete without one: %s', (json) => {
    expect(read(json)).toEqual({ items: [], continueToken: undefined, oversized: 0 });
  });

  it('that ends in the middle has the items before it and says so', () => {
    const json = '{"items":[{"a":1},{"a":2},{"a":3}]}';
    for (let length = 0; length < json.length; length += 1) {
      const { items, error } = read(json.slice(0, length), [2]);
      expect(error).toMatch(length === 0 ? /empty/ : /ends in the middle/);
      expect(parsed(items)).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }].slice(0, items.length));
    }
    expect(read(json.slice(0, -2)).items).toHaveLength(3);
  });

  it.each([
    ['<!doctype html>', /^< at byte 0: a list begins with \{/],
    ['[]', /begins with/],
    ['{"kind":"Status"}', /no list/],
    ['{"items":{}}', /no list/],
    ['{"items":[]} x', /nothing may follow/],
    ['{"items":[{"a":tru}]}', /\} in a word, between byte 10 and/],
    ['{"items":[{"a":01}]}', /1 where a comma/],
    ['{"items":[{"a":"\u0000"}]}', /control character byte 0x00/],
    ['{"items":[{},]}', /\] where a value/],
  ])('that is none says what is wrong: %s', (json, message) => {
    expect(read(json).error).toMatch(message);
  });

  it('leaves out an item that is too large, and goes on', () => {
    const json = JSON.stringify({
      items: [{ a: 1 }, { big: 'x'.repeat(5000) }, { a: 2 }],
      metadata: { continue: 't' },
    });
    const { items, oversized, continueToken } = read(json, [700], 1000);
    expect(parsed(items)).toEqual([{ a: 1 }, { a: 2 }]);
    expect({ oversized, continueToken }).toEqual({ oversized: 1, continueToken: 't' });
  });

  it('refuses what is nested too deep instead of following it', () => {
    expect(read(`{"items":[${'['.repeat(300)}`).error).toMatch(/nested more than 256 deep/);
    expect(read(`{"items":[${'['.repeat(250)}${']'.repeat(250)}]}`).error).toBeUndefined();
  });
});
