import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseMarker, renderMarker, withoutMarker } from './marker.ts';

const old = { id: 'k1', secret: 'an old secret' };
const current = { id: 'k2', secret: 'the current secret' };
const options = { keys: [current, old] } as const;
const marker = {
  id: '5a0d5fd2-0d37-4bd8-9d8e-5d6a6d5c2b3e',
  wf: 'analyze-failures',
  sha: 'abc123',
  run: 'uid-1',
};

test('what is rendered is read back', () => {
  const comment = renderMarker(marker, options);
  expect(comment).toMatch(/^<!-- hummingbird-session: \{"id":.*"sig":"[0-9a-f]{64}"\} -->$/);
  expect(parseMarker(`Result\n\n${comment}\n`, options)).toEqual({ kind: 'Signed', marker });
});

test('any field content survives and never ends the comment early', () => {
  const word = fc.string({
    unit: fc.constantFrom('-', '>', '<', '!', '"', '\\', 'a', '\n', 'é'),
    minLength: 1,
    maxLength: 40,
  });
  fc.assert(
    fc.property(word, word, word, (id, wf, run) => {
      const comment = renderMarker({ id, wf, run }, options);
      expect(comment.indexOf('--', 4)).toBe(comment.length - 3);
      expect(parseMarker(comment, options)).toEqual({ kind: 'Signed', marker: { id, wf, run } });
    }),
  );
});

test('a key that was rotated out of first place still verifies, one that was dropped does not', () => {
  const comment = renderMarker(marker, { keys: [old] });
  expect(parseMarker(comment, options)?.kind).toBe('Signed');
  expect(parseMarker(comment, { keys: [current] })).toEqual({ kind: 'Forged' });
});

test.each([
  ['another id', (text: string) => text.replace('5a0d5fd2', '00000000')],
  ['another run', (text: string) => text.replace('uid-1', 'uid-2')],
  ['a field taken away', (text: string) => text.replace('"run":"uid-1",', '')],
  ['a cut signature', (text: string) => text.replace(/[0-9a-f]"\} -->$/, '"} -->')],
  ['an unknown key', (text: string) => text.replace('"k2"', '"k9"')],
])('a marker with %s is forged', (_what, change) => {
  const comment = renderMarker(marker, options);
  const changed = change(comment);
  expect(changed).not.toBe(comment);
  expect(parseMarker(changed, options)).toEqual({ kind: 'Forged' });
});

describe('old forms', () => {
  const accepting = { ...options, acceptUnsigned: true };

  test.each([
    '<!-- hummingbird-session: 5a0d5fd2-0d37-4bd8-9d8e-5d6a6d5c2b3e -->',
    '<!-- hummingbird-session 5a0d5fd2-0d37-4bd8-9d8e-5d6a6d5c2b3e -->',
  ])('%s is unsigned; where such markers are accepted, it names a session and no workflow', (comment) => {
    expect(parseMarker(comment, options)).toEqual({ kind: 'Unsigned' });
    expect(parseMarker(comment, accepting)).toEqual({ kind: 'Accepted', marker: { id: marker.id, wf: '' } });
  });

  test('JSON without a signature is unsigned; where such markers are accepted, it has the fields of today', () => {
    const comment = (fields: object) => `<!-- hummingbird-session: ${JSON.stringify(fields)} -->`;
    const old = { id: marker.id, wf: 'w', sha: 'A'.repeat(40) };
    expect(parseMarker(comment(old), options)).toEqual({ kind: 'Unsigned' });
    expect(parseMarker(comment(old), accepting)).toEqual({
      kind: 'Accepted',
      marker: { id: marker.id, wf: 'w', sha: 'a'.repeat(40) },
    });
    // A run was not named then, and a commit is one or is none.
    expect(parseMarker(comment({ ...old, sha: 'HEAD', run: 'r' }), accepting)).toEqual({
      kind: 'Accepted',
      marker: { id: marker.id, wf: 'w' },
    });
  });

  test('what names no session of that time is not accepted', () => {
    const comment = '<!-- hummingbird-session: {"id":"../../x","wf":"w"} -->';
    expect(parseMarker(comment, accepting)).toEqual({ kind: 'Unsigned' });
  });

  test('accepting them makes no other marker count', () => {
    const signed = renderMarker(marker, options);
    expect(parseMarker(signed, accepting)).toEqual({ kind: 'Signed', marker });
    expect(parseMarker(signed.replace('"wf"', '"wg"'), accepting)?.kind).toBe('Forged');
    const forged = signed.replace(/"sig":"[^"]+"/, '"sig":"ab"');
    expect(parseMarker(forged, accepting)).toEqual({ kind: 'Forged' });
  });
});

test('a marker that is quoted before other text does not count', () => {
  const comment = renderMarker(marker, options);
  expect(parseMarker(`${comment}\n\nwhat does this line mean?`, options)).toBeUndefined();
  expect(parseMarker(`${comment}\n<!-- something else -->`, options)).toBeUndefined();
});

test('of two markers the last one counts', () => {
  const first = renderMarker({ id: 'first', wf: 'w' }, options);
  const last = renderMarker({ id: 'last', wf: 'w' }, options);
  expect(parseMarker(`${first}\n${last}`, options)).toMatchObject({ marker: { id: 'last' } });
});

test.each([
  '',
  'text',
  '<!-- hummingbird-session: {} -->',
  '<!-- hummingbird-session: {"id":7} -->',
  '<!-- hummingbird-sessions: x -->',
  '<!-- hummingbird-session: nonsense -->',
])('%j carries no marker', (body) => {
  expect(parseMarker(body, options)).toBeUndefined();
});

test('a note without its marker is the text', () => {
  expect(withoutMarker(`Result\n\n${renderMarker(marker, options)}`)).toBe('Result');
  expect(withoutMarker('Result')).toBe('Result');
});
