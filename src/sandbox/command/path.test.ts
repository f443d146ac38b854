import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PathRefusedError, scratchPath } from './path.ts';

describe('a path in the sandbox', () => {
  it.each([
    ['/tmp/data/a', '/tmp/data/a'],
    ['/tmp/data/_out/1.log', '/tmp/data/_out/1.log'],
    ['//tmp//data/./a', '/tmp/data/a'],
    ['/tmp/data/it\'s "quoted" $(id); rm -rf ~\n', '/tmp/data/it\'s "quoted" $(id); rm -rf ~\n'],
    ['/tmp/data/-rf', '/tmp/data/-rf'],
    ['/tmp/data/..a/b..', '/tmp/data/..a/b..'],
  ])('%j is %j', (path, normal) => {
    expect(scratchPath(path)).toBe(normal);
  });

  it.each([
    '',
    '/',
    '/tmp/data',
    '/tmp/data/',
    '/tmp/data/.',
    '/tmp/data/a/',
    '/tmp/database',
    '/tmp/data/../x',
    '/tmp/data/a/../b',
    '/tmp/data/..',
    '/etc/passwd',
    'a',
    'tmp/data/a',
    '~/a',
    '/tmp/data/a\0',
    `/tmp/data/${'x'.repeat(5000)}`,
  ])('%j is refused', (path) => {
    expect(() => scratchPath(path)).toThrow(PathRefusedError);
  });

  it('is below the scratch directory or refused, whatever it is', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('/', '.', '..', 'tmp', 'data', 'a', '\n', ' ')), (parts) => {
        const path = parts.join('');
        try {
          expect(scratchPath(path)).toMatch(/^\/tmp\/data\/./);
        } catch (error) {
          expect(error).toBeInstanceOf(PathRefusedError);
        }
      }),
    );
  });
});
