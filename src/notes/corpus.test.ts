import { describe, expect, it } from 'vitest';
import { HOSTILE } from '../../test/notes/hostile.ts';
import { effectsOf } from '../../test/notes/inert.ts';
import { ORDINARY } from '../../test/notes/ordinary.ts';
import { renderNote } from './render.ts';
import { sanitise } from './sanitise.ts';

const keys = [{ id: 'k', secret: 'secret' }] as const;
const marker = { id: 'session', wf: 'wf', run: 'run' };
const note = (text: string) => renderNote({ text, marker }, { keys });

describe('an ordinary note stays byte for byte, and has no effect', () => {
  it.each(Object.entries(ORDINARY))('%s', (_, text) => {
    expect(sanitise(text)).toBe(text);
    expect(effectsOf(note(text), keys)).toEqual([]);
  });
});

describe('a hostile note has no effect but being read', () => {
  it.each(Object.entries(HOSTILE))('%s', (_, text) => {
    expect(effectsOf(note(text), keys)).toEqual([]);
  });

  it('and has lost something', () => {
    const kept = Object.entries(HOSTILE).filter(([, text]) => sanitise(text) === text);
    expect(kept.map(([name]) => name)).toEqual([]);
  });

  it('would mostly have had one that the reader of these tests sees', () => {
    const seen = Object.values(HOSTILE).filter(
      (text) => effectsOf(`${text}\n\n${note('x').slice(3)}`, keys).length > 0,
    );
    expect(seen.length).toBeGreaterThan(50);
  });
});

it('there are sixty of each', () => {
  expect(Object.keys(ORDINARY).length).toBeGreaterThanOrEqual(60);
  expect(Object.keys(HOSTILE).length).toBeGreaterThanOrEqual(60);
});
