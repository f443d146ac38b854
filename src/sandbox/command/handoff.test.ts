import { describe, expect, it } from 'vitest';
import { Handoff, pieces } from './handoff.ts';

const bytes = (text: string) => Buffer.from(text);

describe('a handoff', () => {
  it('gives each chunk to the reader, in order, and ends', async () => {
    const handoff = new Handoff();
    const writing = (async () => {
      for (const text of ['a', 'b', 'c']) await handoff.write(bytes(text));
      handoff.end();
    })();
    const read: string[] = [];
    for await (const chunk of handoff) read.push(Buffer.from(chunk).toString());
    await writing;
    expect(read).toEqual(['a', 'b', 'c']);
  });

  it('holds the writer until its chunk has been used', async () => {
    const handoff = new Handoff();
    let used = false;
    const writing = Promise.resolve(handoff.write(bytes('a'))).then(() => used);
    handoff.end();
    for await (const _chunk of handoff) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      used = true;
    }
    expect(await writing).toBe(true);
  });

  it('ends with nothing written', async () => {
    const handoff = new Handoff();
    setTimeout(() => handoff.end(), 5);
    for await (const _chunk of handoff) expect.unreachable();
  });

  it('lets the writer go on when it is abandoned', async () => {
    const handoff = new Handoff();
    const first = handoff.write(bytes('a'));
    handoff.abandon();
    await first;
    await handoff.write(bytes('b'));
  });

  it('lets the writer go on when the reader stops', async () => {
    const handoff = new Handoff();
    const first = handoff.write(bytes('a'));
    for await (const _chunk of handoff) break;
    await first;
  });
});

describe('pieces', () => {
  it.each([
    [0, []],
    [3, [3]],
    [4, [4]],
    [9, [4, 4, 1]],
  ])('of %i bytes by 4 have sizes %j', (size, sizes) => {
    expect([...pieces(Buffer.alloc(size), 4)].map((piece) => piece.length)).toEqual(sizes);
  });
});
