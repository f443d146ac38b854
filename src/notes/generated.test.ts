import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HOSTILE } from '../../test/notes/hostile.ts';
import { effectsOf } from '../../test/notes/inert.ts';
import { ORDINARY } from '../../test/notes/ordinary.ts';
import { renderNote } from './render.ts';

const keys = [{ id: 'k', secret: 'secret' }] as const;
const marker = { id: 'session', wf: 'wf', run: 'run' };

/** Pieces that open, close or cut one another's meaning. */
const PIECES = [
  '@ada /close \n \n\n   \t ` `` ``` ~~~ < > <details> </details> <summary> <!-- --> [ ] ( ) ](  ![ !',
  '\\ &#64;ada &lt; * ** _ | |- --- === $ $$ >>> > - 1. # x : :// https://evil.example/ www. mailto:',
  '<div> </div> <img <a \r \u2028 \u200b \u202e \u001b[31m Closes #1 [^1] [1]: %{ [[ ]] {% = " \' javascript: @all',
]
  .join(' ')
  .split(/ +/)
  .concat([' ', '  ', '    ', 'Closes #1', '\n- ', '\n> ', '\n\n', '\n/merge\n', '\n```\n']);

/** Whole constructs between the pieces, so that generated texts reach deep places too. */
const PARTS = [...Object.values(HOSTILE), ...Object.values(ORDINARY)].filter((text) => text.length < 60);

it('of a hundred thousand generated notes none has an effect', () => {
  const text = fc
    .array(
      fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom(...PIECES) },
        { weight: 1, arbitrary: fc.constantFrom(...PARTS) },
      ),
      {
        maxLength: 8,
      },
    )
    .map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(text, (source) => {
      const note = renderNote({ text: source, marker }, { keys });
      expect(effectsOf(note, keys)).toEqual([]);
    }),
    // The same notes each time, so that a fault is there for everybody; others with another seed.
    {
      numRuns: Number(process.env['HUMMINGBIRD_TEST_NOTES'] ?? 100_000),
      seed: Number(process.env['HUMMINGBIRD_TEST_SEED'] ?? 20),
    },
  );
}, 600_000);
