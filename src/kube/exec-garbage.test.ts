import { describe, expect, it } from 'vitest';
import { BufferGarbage } from './exec-garbage.ts';

describe('buffer garbage', () => {
  const MIB = 1024 * 1024;
  const counting = (held: () => number) => {
    const collected = { young: 0, full: 0 };
    const garbage = new BufferGarbage({
      young: () => {
        collected.young += 1;
      },
      full: () => {
        collected.full += 1;
      },
      heldBytes: held,
    });
    return { collected, garbage };
  };

  it('is collected every 2 MiB', () => {
    const { collected, garbage } = counting(() => 0);
    for (let i = 0; i < 100; i++) garbage.add(100 * 1024);
    expect(collected).toEqual({ young: 4, full: 0 });
  });

  it('that the young collections leave has a full one from 16 MiB on', () => {
    let held = 100 * MIB;
    const { collected, garbage } = counting(() => held);
    for (let i = 0; i < 8; i++) {
      garbage.add(2 * MIB);
      held += 2 * MIB;
    }
    expect(collected.full).toBe(0);
    garbage.add(2 * MIB);
    expect(collected.full).toBe(1);
  });

  it('is told from what is in use: a full collection that frees nothing is not repeated at once', () => {
    let held = 0;
    const { collected, garbage } = counting(() => held);
    garbage.add(2 * MIB);
    held = 50 * MIB;
    for (let i = 0; i < 10; i++) garbage.add(2 * MIB);
    expect(collected).toEqual({ young: 10, full: 1 });
  });

  it('is really collected: used buffers do not pile up', () => {
    const garbage = new BufferGarbage();
    let highest = 0;
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 2_000; i++) {
      garbage.add(Buffer.allocUnsafeSlow(16 * 1024).length);
      highest = Math.max(highest, process.memoryUsage().arrayBuffers - before);
    }
    expect(highest).toBeLessThan(16 * 1024 * 1024);
  });

  it('leaves the process without a gc of its own', () => {
    new BufferGarbage();
    expect(Object.hasOwn(globalThis, 'gc')).toBe(process.execArgv.includes('--expose-gc'));
  });
});
