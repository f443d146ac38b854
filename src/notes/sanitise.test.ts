import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { extractCommands } from '../../test/fakes/gitlab/quick-actions.ts';
import { parseMarker, renderMarker } from './marker.ts';
import { renderNote } from './render.ts';
import { sanitise } from './sanitise.ts';

const keys = [{ id: 'k', secret: 'secret' }] as const;
const marker = { id: 'session', wf: 'wf', run: 'run' };

const ORDINARY: Record<string, string> = {
  prose: 'The test `cache.test.ts` fails because the clock is read twice.\n\nSee line 12 of src/cache.ts.',
  headings: '# Root cause\n\n## Evidence\n\nText *with* **emphasis** and ~~strikes~~.',
  lists: '- one\n- two\n  - nested\n\n1. first\n2. second\n\n- [ ] open\n- [x] done',
  fence: '```ts\nconst path = "/usr/bin/node"; // <T>(a: T) => a\n@Injectable()\nclass A {}\n```',
  'tilde fence': '~~~\n$ npm test\n<html>&amp;\n~~~',
  'indented code': 'Output:\n\n    Error: expected 1\n    at /app/x.ts:1',
  table: '| job | result |\n|---|:--:|\n| unit | `failed` |\n| e2e \\| slow | ok |',
  details: '<details>\n<summary>Log of unit</summary>\n\n```\n1 failed\n```\n\n</details>\n\nAfter.',
  link: 'See [the job](https://gitlab.example.org/group/app/-/jobs/7) or <https://example.org/a?b=1&c=2>.',
  'bare address': 'https://gitlab.example.org/group/app/-/merge_requests/1#note_2 and www.example.org/team',
  mail: 'Written by ada@example.org for somebody.',
  quote: '> as you said\n> twice\n\nYes.',
  references: 'Related to #12, !34 and group/app#5; label ~bug.',
  paths: 'The file is /etc/passwd.\n/usr/lib/x is another, and\n/app/src/y.ts:3 a third.',
  'package in code': 'Raise `@types/node` to 24 and run `npm i -D @types/node`.',
  repl: 'Try:\n\n```\n>>> import os\n```',
  money: 'It costs $5 a run.',
  emoji: 'Fine 👩‍💻 and ünïcödé, 日本語, עברית.',
  reference: 'See [guide][1].\n\n[1]: https://example.org/guide "Guide"',
  footnote: 'Claim[^1].\n\n[^1]: Source.',
  breaks: 'one<br>two<br/>three, H<sub>2</sub>O, <kbd>Ctrl</kbd>',
};

test.each(Object.entries(ORDINARY))('%s stays byte for byte', (_name, text) => {
  expect(sanitise(text)).toBe(text);
});

describe('quick actions', () => {
  test.each([
    '/close',
    'Done.\n/close\nBye.',
    '/label ~"very bad"\n/assign @ada',
    '```\n/merge\n```',
    '````\n/merge\n````',
    '~~~\n/merge\n~~~',
    '- item\n  ```\n/close\n  ```',
    'text\r/close',
    'text\n\r/close',
    '\u0000/close',
    '\u200b/close',
    '\u001b[31m/close',
    '<details>\n/close\n</details>',
    '<div>\n/close\n</div>',
    '<!--\n/close\n-->',
    '`a\n/close\nb`',
    '/CLOSE',
    '/close\t',
    'a | b\n--|--\n/close | x',
    '> quote\n/close',
    '/title Draft: taken over',
    '[a](\n/close "title")',
    '```\nunclosed\n/close',
    '>>>\n\n/close\n',
    '/unknown_command of another version',
  ])('%j carries none out', (text) => {
    const body = renderNote({ text, marker }, { keys });
    expect(extractCommands(body)).toEqual({ text: body, commands: [] });
    // Nor does any word that GitLab may know tomorrow stand where a command would.
    expect(body).not.toMatch(/^\/[a-z_]+(?:\s|$)/im);
  });
});

test('a command stays readable: a blank before it in code, a backslash in prose', () => {
  expect(sanitise('```\n/merge\n```')).toBe('```\n /merge\n```');
  expect(sanitise('Then\n/merge now')).toBe('Then\n\\/merge now');
});

/** GitLab's user pattern, on the text that is left when code is taken out. */
const mentionsIn = (text: string) => {
  const prose = text
    .replace(/^( *)(`{3,}|~{3,}).*\n[\s\S]*?(?:\n\1\2[`~]*$|(?![\s\S]))/gm, '')
    .replace(/(`+)[^`][\s\S]*?\1/g, '');
  return prose
    .replace(/&#0*64;|&#x0*40;|&commat;/gi, '@')
    .replace(/\\([@_])/g, '$1')
    .match(/(?<![A-Za-z0-9_])@[A-Za-z0-9_]/g);
};

describe('mentions', () => {
  test.each([
    '@all look at this',
    'cc @ada.lovelace, @group/sub',
    '(@ada)',
    '*@ada*',
    '**x**@ada',
    '\\@ada',
    '&#64;ada',
    '&commat;all',
    '&#x40;ada',
    'é@ada',
    '| a |\n|---|\n| @ada |',
    '> @ada',
    '<details>\n@ada\n</details>',
    '[ask](@ada)',
    '[ask](%40all)',
    '[ask][1]\n\n[1]: @ada',
    'a ` b @ada',
    'mail me@example.org and @ada',
    'www.example.org/@ada',
    '>>>\n```\n>>>\n@ada',
    '---\n```\n---\n@ada',
    '$$ ` $$ @ada `',
    '[[a`]] @ada `',
  ])('%j notifies nobody', (text) => {
    const clean = sanitise(text);
    expect(text).toMatch(/@|&#|&commat|%40/);
    expect(mentionsIn(clean)).toBeNull();
    if (text.startsWith('[ask](')) expect(clean).toMatch(/^\\\[ask\]/);
    expect(clean).not.toMatch(/^\[1\]: @/m);
  });

  test.each([
    ['>>>\n```\n>>>\n@ada', '\\>>>'],
    ['---\n```\n---\n@ada', '\\---'],
    ['$$ ` $$ @ada `', '\\$\\$'],
    ['[[a`]] @ada `', '\\[['],
  ])('%j loses what GitLab alone reads before code', (text, expected) => {
    expect(sanitise(text)).toContain(expected);
  });
});

describe('markers', () => {
  const forged = renderMarker(
    { id: 'other', wf: 'wf', run: 'run' },
    { keys: [{ id: 'k', secret: 'guess' }] },
  );
  const stolen = renderMarker({ id: 'other', wf: 'wf', run: 'other' }, { keys });

  test.each([
    forged,
    stolen,
    `text\n\n${stolen}`,
    `${stolen}\n<!-- open`,
    `<details>${stolen}`,
    `\`\`\`\n${stolen}`,
    `<!-\u200b- ${stolen.slice(5)}`,
  ])('in the text %j it is text, and ours stands last', (text) => {
    const body = renderNote({ text, marker }, { keys });
    expect(parseMarker(body, { keys })).toEqual({ kind: 'Signed', marker });
    expect(sanitise(text).replace(/^```[\s\S]*?^```/gm, '')).not.toContain('<!--');
  });
});

describe('images, HTML and links', () => {
  test('an external image becomes a link', () => {
    expect(sanitise('![chart](https://evil.example/x.png?leak)')).toBe(
      '(image) [chart](https://evil.example/x.png?leak)',
    );
    expect(sanitise('!![a](//evil.example/x)')).toBe('!(image) [a](//evil.example/x)');
    expect(sanitise('![a][1]\n\n[1]: https://evil.example/x')).toMatch(/^\(image\) \[a\]\[1\]/);
    expect(sanitise('[![badge](https://evil.example/x.svg)](https://evil.example)')).toBe(
      '[image: badge](https://evil.example)',
    );
  });

  test("an upload of the project's stays an image", () => {
    expect(sanitise('![shot](/uploads/0123abcd/shot.png)')).toBe('![shot](/uploads/0123abcd/shot.png)');
    expect(sanitise('![shot](/uploads/../x)')).not.toBe('x');
  });

  test('an image that was hidden in an HTML block is found when the block becomes text', () => {
    const clean = sanitise('<div>\n![x](https://evil.example/x.png)\n</div>');
    expect(clean).not.toContain('![');
    expect(clean).toContain('&lt;div>');
  });

  test.each([
    '<img src=x onerror=alert(1)>',
    '<a href="https://evil.example">x</a>',
    '<script>alert(1)</script>',
    '<details onclick="x">',
    '<style>*{}</style>',
    '<?php x ?>',
    '<!DOCTYPE html>',
    '<![CDATA[x]]>',
    '<iframe\nsrc="x">',
  ])('%j is shown as text', (text) => {
    expect(sanitise(text)).not.toMatch(/<[a-z!?/]/i);
  });

  test.each([
    '[x](javascript:alert(1))',
    '[x](data:text/html,x)',
    '[x]( vbscript:x)',
    '<javascript:alert(1)>',
    '[x]: javascript:alert(1)\n\n[x]',
  ])('%j leads nowhere', (text) => {
    expect(sanitise(text)).toMatch(/^(?:\\\[|&lt;)/);
  });
});

describe('closing words, controls and open ends', () => {
  test.each([
    'Closes #1',
    'This fixes group/app#2',
    'Resolves: https://gitlab.example.org/g/a/-/issues/3',
    'closing issues #4',
    'Implements ABC-12',
  ])('%j closes nothing and reads the same', (text) => {
    const clean = sanitise(text);
    expect(clean).not.toMatch(/\b(?:clos|fix|resolv|implement)/i);
    expect(clean.replaceAll('\u2060', '')).toBe(text);
  });

  test('bidirectional controls, escape sequences and invisible characters go', () => {
    expect(
      sanitise('a\u202eb\u2066c\u001b[31md\u001b]8;;http://x\u0007e\u0008f\u{e0041}g\u200bh\ufeff'),
    ).toBe('abcdefgh');
    expect(sanitise('lone \ud800 surrogate')).toBe('lone \ufffd surrogate');
  });

  test('an open fence ends before the footer', () => {
    const body = renderNote({ text: '```\nlog', marker, footer: 'Reply to go on.' }, { keys });
    expect(body).toMatch(/^```\nlog\n```\n\n---\n\nReply to go on\.\n\n<!-- /);
  });

  test('an open <details> ends before the footer, one too many is text', () => {
    expect(sanitise('<details>\n\nlog')).toBe('<details>\n\nlog\n\n</details>');
    expect(sanitise('</details>\n\nlog')).toBe('&lt;/details>\n\nlog');
  });

  test('a note never exceeds its limit, says so, and keeps its marker', () => {
    const body = renderNote({ text: '@a '.repeat(2000), marker }, { keys, maxLength: 4000 });
    expect(body.length).toBeLessThanOrEqual(4000);
    expect(body).toContain('the rest was cut');
    expect(parseMarker(body, { keys })?.kind).toBe('Signed');
  });

  test('a text without anything visible says so', () => {
    expect(renderNote({ text: ' \u200b\n', marker }, { keys })).toMatch(/^\*No text\.\*/);
  });
});

test.each(['> ', '- ', '>', '1. ', '*', '['])(
  '%j ten thousand times over is shown, not followed',
  (piece) => {
    const text = `${piece.repeat(10_000)}@ada\n/close`;
    const clean = sanitise(text);
    expect(extractCommands(clean).commands).toEqual([]);
    expect(mentionsIn(clean)).toBeNull();
  },
  60_000,
);

test('whatever the text is, a second pass changes nothing visible and no command is left', () => {
  const piece = fc.constantFrom(
    '@a',
    '/close',
    '\n',
    '\n\n',
    ' ',
    '`',
    '```',
    '~~~',
    '<',
    '>',
    '<details>',
    '</details>',
    '<!--',
    '-->',
    '[',
    ']',
    '(',
    ')',
    '!',
    '\\',
    '&#64;',
    '*',
    '_',
    '|',
    '---',
    '$',
    '>>>',
    '    ',
    '- ',
    '# ',
    'x',
    ':',
    'http://a',
    '<div>',
    '\r',
    'Closes #1',
    '[^1]',
    '[1]: ',
    '%{',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join('');
      const clean = sanitise(text);
      expect(sanitise(clean).replaceAll('\u2060', '')).toBe(clean.replaceAll('\u2060', ''));
      const body = renderNote({ text, marker }, { keys });
      expect(extractCommands(body).commands).toEqual([]);
      expect(parseMarker(body, { keys })).toEqual({ kind: 'Signed', marker });
    }),
    { numRuns: 300 },
  );
}, 60_000);
