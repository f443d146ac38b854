import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entryBytes, jsonBytes, listBytes } from './json-bytes.ts';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const lists = fc.array(fc.oneof(fc.jsonValue(), fc.constant(undefined)));

describe('jsonBytes', () => {
  it('gives the bytes that JSON.stringify gives, whatever is in the lists', () => {
    fc.assert(
      fc.property(lists, lists, fc.jsonValue(), (contents, transcript, rest) => {
        const object = { version: 1, contents, rest, left: undefined, transcript };
        expect(text(jsonBytes(object, ['contents', 'transcript']))).toBe(JSON.stringify(object));
        // A second time from what was kept.
        expect(text(jsonBytes(object, ['contents', 'transcript']))).toBe(JSON.stringify(object));
      }),
    );
  });

  it('writes an entry out once, however often its list is', () => {
    let written = 0;
    const entry = { toJSON: () => ++written };
    const contents: unknown[] = [entry];
    const sizes = Array.from({ length: 5 }, () => {
      contents.push({ text: 'é' });
      return jsonBytes({ contents }, ['contents']).length;
    });
    expect(written).toBe(1);
    expect(sizes.at(-1)).toBe(Buffer.byteLength('{"contents":[1]}') + 5 * Buffer.byteLength(',{"text":"é"}'));
  });

  it('leaves out a list that is not there', () => {
    const object: { a: number; contents?: unknown[] | undefined } = { contents: undefined, a: 1 };
    expect(text(jsonBytes(object, ['contents']))).toBe('{"a":1}');
    expect(text(jsonBytes({}, ['contents']))).toBe('{}');
  });
});

describe('listBytes', () => {
  it('counts bytes, brackets and commas', () => {
    fc.assert(
      fc.property(lists, (entries) => {
        expect(listBytes(entries)).toBe(Buffer.byteLength(JSON.stringify(entries)));
      }),
    );
  });

  it('keeps the bytes of an entry', () => {
    const entry = { a: 1 };
    expect(entryBytes(entry)).toBe(entryBytes(entry));
  });
});
