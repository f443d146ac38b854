import { describe, expect, it } from 'vitest';
import { BufferGarbage } from './exec-garbage.ts';

describe('buffer garbage', () => {
  it('is collected every 4 MiB', () => {
    let collected = 0;
    const garbage = new BufferGarbage(() => {
      collected += 1;
    });
    for (let i = 0; i < 100; i++) garbage.add(100 * 1024);
    expect(collected).toBe(2);
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
