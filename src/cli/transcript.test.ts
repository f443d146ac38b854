import { expect, test } from 'vitest';
import { printTranscript, type TranscriptView } from './transcript.ts';

async function printed(views: readonly TranscriptView[], options: { follow: boolean; stopAfter?: number }) {
  const written: string[] = [];
  const stop = new AbortController();
  let asked = 0;
  await printTranscript(
    async () => views[Math.min(asked++, views.length - 1)] ?? { text: undefined, ended: true },
    {
      follow: options.follow,
      write: (text) => written.push(text),
      pause: async () => {
        if (asked === options.stopAfter) stop.abort();
      },
      signal: stop.signal,
    },
  );
  return written;
}

test('what is there is printed once', async () => {
  expect(await printed([{ text: 'one', ended: false }], { follow: false })).toEqual(['one']);
});

test('nothing there is said, unless somebody waits for it', async () => {
  const nothing = { text: undefined, ended: false };
  await expect(printed([nothing], { follow: false })).rejects.toThrow(/no transcript yet/);
  expect(await printed([nothing, { text: 'one', ended: true }], { follow: true })).toEqual(['one']);
});

test('whoever follows gets each part once, and the end', async () => {
  const views = [
    { text: 'one\n', ended: false },
    { text: 'one\n', ended: false },
    { text: 'one\n\ntwo\n', ended: false },
    { text: 'one\n\ntwo\n\nthree\n', ended: true },
  ];
  expect(await printed(views, { follow: true })).toEqual(['one\n', '\ntwo\n', '\nthree\n']);
});

test('a text that was written anew is shown anew', async () => {
  const views = [
    { text: 'one', ended: false },
    { text: 'other', ended: true },
  ];
  expect(await printed(views, { follow: true })).toEqual(['one', '\nother']);
});

test('whoever stops following is let go', async () => {
  expect(await printed([{ text: 'one', ended: false }], { follow: true, stopAfter: 3 })).toEqual(['one']);
});
