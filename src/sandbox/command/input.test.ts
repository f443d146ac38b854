import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CommandInput, EndMarkFilter } from './input.ts';

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  setFlagsFromString('--no-expose-gc');
}

async function filter(mark: string, chunks: readonly string[]): Promise<{ text: string; marks: number }> {
  let text = '';
  let marks = 0;
  const sink = {
    write: (chunk: Uint8Array) => {
      text += Buffer.from(chunk).toString();
    },
  };
  const filtered = new EndMarkFilter(mark, sink, () => {
    marks += 1;
  });
  for (const chunk of chunks) await filtered.write(Buffer.from(chunk));
  await filtered.flush();
  return { text, marks };
}

describe("a command's input", () => {
  it('keeps no chunk that was taken, however many come', async () => {
    const taken: WeakRef<Uint8Array>[] = [];
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let count = 0; count < 200; count += 1) yield new Uint8Array(1024);
    }
    const input = new CommandInput(chunks(), async () => undefined);
    for await (const chunk of input) taken.push(new WeakRef(chunk));
    // A weak reference holds its target until the turn in which it was made is over.
    await new Promise((resolve) => setTimeout(resolve));
    collectGarbage();
    expect(taken).toHaveLength(200);
    expect(taken.filter((chunk) => chunk.deref() !== undefined).length).toBeLessThan(3);
    input.end();
  });

  it('ends with the command, also while its source is waiting', async () => {
    let returned = false;
    const input = new CommandInput(
      {
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise(() => undefined),
          return: async () => {
            returned = true;
            return { done: true, value: undefined };
          },
        }),
      },
      async () => undefined,
    );
    setTimeout(() => input.end(), 5);
    for await (const _chunk of input) expect.unreachable();
    expect(returned).toBe(true);
  });

  it('is not asked for when the command had ended before', async () => {
    const next = vi.fn();
    const input = new CommandInput({ [Symbol.asyncIterator]: () => ({ next }) }, async () => undefined);
    input.end();
    for await (const _chunk of input) expect.unreachable();
    expect(next).not.toHaveBeenCalled();
  });
});

describe('the end mark', () => {
  it.each([
    [['abEND'], 'ab', 1],
    [['ab', 'E', 'N', 'D'], 'ab', 1],
    [['EN', 'DE', 'ND'], 'END', 1],
    [['abE'], 'abE', 0],
    [['abENDcd'], 'abcd', 1],
    [['EEND'], 'E', 1],
    [['EN', 'X'], 'ENX', 0],
    [['ab'], 'ab', 0],
  ])('in %j leaves %j', async (chunks, text, marks) => {
    expect(await filter('END', chunks)).toEqual({ text, marks });
  });

  it('is found wherever the chunks are cut, and nothing else is lost', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom('a', 'b') }),
        fc.array(fc.nat(5)),
        async (before, cuts) => {
          const whole = `${before}aabX`;
          const chunks: string[] = [];
          let at = 0;
          for (const cut of cuts) {
            chunks.push(whole.slice(at, at + cut));
            at += cut;
          }
          chunks.push(whole.slice(at));
          expect(await filter('aabX', chunks)).toEqual({ text: before, marks: 1 });
        },
      ),
    );
  });
});

async function read(input: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const chunk of input) text += Buffer.from(chunk).toString();
  return text;
}

describe('a command’s input', () => {
  it('is what the source gives', async () => {
    async function* source() {
      yield Buffer.from('a');
      yield Buffer.from('b');
    }
    expect(await read(new CommandInput(source(), async () => undefined))).toBe('ab');
  });

  it('ends with the command, though the source waits for ever', async () => {
    const silent: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
    };
    const input = new CommandInput(silent, async () => undefined);
    setTimeout(() => input.end(), 5);
    expect(await read(input)).toBe('');
  });

  it('lets the source close what it holds', async () => {
    let closed = false;
    async function* source() {
      try {
        for (;;) yield Buffer.from('a');
      } finally {
        closed = true;
      }
    }
    const input = new CommandInput(source(), async () => undefined);
    for await (const _chunk of input) input.end();
    expect(closed).toBe(true);
  });

  it('that fails ends the command first, then tells', async () => {
    const broken = new Error('broken');
    const events: string[] = [];
    const failing: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(broken) }),
    };
    const input = new CommandInput(failing, async () => events.push('ended'));
    await read(input).catch((error: unknown) => events.push(String(error)));
    expect(events).toEqual(['ended', 'Error: broken']);
    expect(input.failure).toEqual({ cause: broken });
  });
});
