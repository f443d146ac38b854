import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TarEntry, tar } from '../../../test/fakes/gitlab/tar.ts';
import { type RepositoryTree, TreeUnavailableError } from '../../delivery/port.ts';
import { archiveTree, TREE_BOUNDS } from './archive-tree.ts';

const SHA = 'a'.repeat(40);
const NOTHING = new Uint8Array();

async function* inPieces(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const file = (path: string, text: string): TarEntry => ({ path, bytes: Buffer.from(text) });

const treeOf = (
  entries: readonly TarEntry[],
  options: Parameters<typeof archiveTree>[2] = {},
): Promise<RepositoryTree> => archiveTree(inPieces(gzipSync(tar(entries, SHA))), SHA, options);

const textAt = (tree: RepositoryTree, path: string): string | undefined => {
  const entry = tree.entry(path);
  return entry?.kind === 'File' ? Buffer.from(entry.bytes).toString() : undefined;
};

describe('archiveTree', () => {
  it('has every file by its path below the archive’s folder', async () => {
    const tree = await treeOf([
      { path: 'app-aaaa/', bytes: NOTHING, type: '5' },
      { path: 'app-aaaa/apps/', bytes: NOTHING, type: '5' },
      file('app-aaaa/apps/web.yaml', 'a: 1\r\n'),
      { ...file('app-aaaa/run.sh', '#!'), executable: true },
      file('app-aaaa/empty', ''),
    ]);
    expect(tree.sha).toBe(SHA);
    expect(tree.paths).toEqual(['apps/web.yaml', 'empty', 'run.sh']);
    expect(textAt(tree, 'apps/web.yaml')).toBe('a: 1\r\n');
    expect(tree.entry('run.sh')).toMatchObject({ executable: true });
    expect(tree.entry('empty')).toEqual({ kind: 'File', bytes: NOTHING, executable: false });
    expect(tree.entry('apps')).toBeUndefined();
  });

  it('reads long names and long link targets, whatever is in them', async () => {
    const long = `apps/${'ü'.repeat(120)}/${'y'.repeat(200)}/new\nline 12 path=x.yaml`;
    const target = `../${'z'.repeat(150)}`;
    const tree = await treeOf([
      file(`app/${long}`, 'a'),
      { path: 'app/link', bytes: NOTHING, symlink: target },
      file('app/after.yaml', 'b'),
    ]);
    expect(textAt(tree, long)).toBe('a');
    expect(tree.entry('link')).toEqual({ kind: 'Symlink', target });
    expect(textAt(tree, 'after.yaml')).toBe('b');
  });

  it('shows links and never follows them', async () => {
    const tree = await treeOf([{ path: 'app/values.yaml', bytes: NOTHING, symlink: '/etc/passwd' }]);
    expect(tree.entry('values.yaml')).toEqual({ kind: 'Symlink', target: '/etc/passwd' });
  });

  it('names a file over the bound, and holds nothing of it', async () => {
    const bounds = { ...TREE_BOUNDS, fileBytes: 10, heldBytes: 10 };
    const tree = await treeOf([file('app/big', 'x'.repeat(5000)), file('app/small', '123456789')], {
      bounds,
    });
    expect(tree.entry('big')).toEqual({ kind: 'TooLarge', size: 5000 });
    expect(textAt(tree, 'small')).toBe('123456789');
  });

  it('holds the same file once for two trees', async () => {
    const base = await treeOf([file('app/same', 'a'), file('app/other', 'a')]);
    const head = await treeOf([file('app/same', 'a'), file('app/other', 'b')], { like: base });
    const bytes = (tree: RepositoryTree, path: string) => {
      const entry = tree.entry(path);
      return entry?.kind === 'File' ? entry.bytes : undefined;
    };
    expect(bytes(head, 'same')).toBe(bytes(base, 'same'));
    expect(textAt(head, 'other')).toBe('b');
  });

  it('holds no more than the files: nothing of the stream', async () => {
    const tree = await treeOf([file('app/a', 'x'.repeat(100)), file('app/b', 'y'.repeat(100))]);
    const entry = tree.entry('a');
    expect(entry?.kind === 'File' && entry.bytes.buffer.byteLength).toBe(512);
  });

  const bounds = { ...TREE_BOUNDS, files: 2, heldBytes: 100 };
  it.each<[string, readonly TarEntry[], RegExp]>([
    [
      'more files than are read',
      ['a', 'b', 'c'].map((name) => file(`app/${name}`, '')),
      /has more than 2 files/,
    ],
    [
      'more bytes than are held',
      [file('app/a', 'x'.repeat(60)), file('app/b', 'x'.repeat(60))],
      /MiB of files/,
    ],
    ['a path that leads out', [file('app/../../etc/passwd', '')], /none of a repository/],
    ['a path from the root', [file('/etc/passwd', '')], /none of a repository/],
    ['a path with an empty segment', [file('app/a//b', '')], /none of a repository/],
    ['a path into .git', [file('app/.GIT/config', '')], /none of a repository/],
    ['one path twice', [file('app/a', '1'), file('app/a', '2')], /has "a" twice/],
    ['a device', [{ path: 'app/null', bytes: NOTHING, type: '3' }], /of a kind that no repository has/],
    ['a hard link', [{ path: 'app/hard', bytes: NOTHING, type: '1', symlink: 'app/a' }], /of a kind that no/],
    [
      'files that archives leave out',
      [file('app/.gitattributes', '* text\nci/** export-ignore\n')],
      /export-ignore/,
    ],
    [
      'files that archives change',
      [file('app/x/.gitattributes', 'v export-subst')],
      /x\/.gitattributes says export-subst/,
    ],
  ])('refuses %s', async (_, entries, message) => {
    const reading = treeOf(entries, { bounds });
    await expect(reading).rejects.toThrow(TreeUnavailableError);
    await expect(reading).rejects.toThrow(message);
  });

  it('takes attributes that mean the opposite, or nothing, for harmless', async () => {
    const text = '# v export-subst\n*.sh text eol=lf -export-ignore\n';
    expect((await treeOf([file('app/.gitattributes', text)])).paths).toEqual(['.gitattributes']);
  });

  it('refuses an archive of another commit', async () => {
    const packed = gzipSync(tar([file('app/a', '')], 'b'.repeat(40)));
    await expect(archiveTree(inPieces(packed), SHA)).rejects.toThrow(/shows the commit bbbb/);
  });

  it('refuses an archive that unpacks to anything', async () => {
    const bounds = { ...TREE_BOUNDS, fileBytes: 10, unpackedBytes: 1024 * 1024 };
    const bomb = treeOf([{ path: 'app/bomb', bytes: new Uint8Array(8 * 1024 * 1024) }], { bounds });
    await expect(bomb).rejects.toThrow('unpacks to more than 1 MiB');
  });

  it('says of anything damaged that it is, and ends', async () => {
    const whole = gzipSync(tar([file('app/a', 'x'.repeat(3000)), file('app/b', 'y')], SHA), { level: 0 });
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const bytes = Uint8Array.from(whole);
        bytes[at] = (bytes[at] ?? 0) ^ flip;
        const outcome = await archiveTree(inPieces(bytes), SHA).catch((error: unknown) => error);
        // Some bytes of gzip's own header mean nothing.
        if (!(outcome instanceof TreeUnavailableError)) expect(outcome).toMatchObject({ paths: ['a', 'b'] });
      }),
      { numRuns: 300 },
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), async (length) => {
        await expect(archiveTree(inPieces(whole.subarray(0, length)), SHA)).rejects.toThrow(
          TreeUnavailableError,
        );
      }),
      { numRuns: 100 },
    );
  });

  it('passes on what the stream throws', async () => {
    async function* broken() {
      yield gzipSync(tar([file('app/a', '')], SHA)).subarray(0, 50);
      throw new Error('the line is dead');
    }
    await expect(archiveTree(broken(), SHA)).rejects.toThrow('the line is dead');
  });
});
