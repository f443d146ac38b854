import { describe, expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import { readableText } from './readable.ts';
import { resolveFile } from './safe-path.ts';

describe('G6: the repository is a closed box', () => {
  const tree = aTree({
    'apps/a.yaml': 'a: 1\n',
    link: { kind: 'Symlink', target: '/etc' },
    'link/passwd.yaml': 'a: 1\n',
    'apps/link.yaml': { kind: 'Symlink', target: '../../etc/passwd' },
    module: { kind: 'Submodule' },
    'module/a.yaml': 'a: 1\n',
    big: { kind: 'TooLarge', size: 99 },
    '../out.yaml': 'a: 1\n',
    '/etc/a.yaml': 'a: 1\n',
    '.git/config': 'a: 1\n',
  });
  const rows: readonly (readonly [path: string, message: string])[] = [
    ['', 'is empty'],
    ['../out.yaml', 'has the segment ..'],
    ['apps/../apps/a.yaml', 'has the segment ..'],
    ['apps/./a.yaml', 'has the segment .'],
    ['/etc/a.yaml', 'is absolute'],
    ['C:/a.yaml', 'is absolute'],
    ['apps\\a.yaml', 'has a backslash'],
    ['apps/a.yaml\0', 'has a character that is not seen'],
    ['apps/a\n.yaml', 'has a character that is not seen'],
    ['apps/\u202eay.yaml', 'has a character that is not seen'],
    ['apps/a\u200b.yaml', 'has a character that is not seen'],
    ['apps/\ud800.yaml', 'has a character that is not seen'],
    ['apps/e\u0301.yaml', 'is not in Unicode normal form C'],
    ['apps//a.yaml', 'has an empty segment'],
    ['apps/', 'has an empty segment'],
    ['.git/config', 'leads into .git'],
    ['apps/.GIT/config', 'leads into .git'],
    ['.git./config', 'leads into .git'],
    ['git~1/config', 'leads into .git'],
    ['.git::$INDEX_ALLOCATION/config', 'leads into .git'],
    ['link/passwd.yaml', 'crosses the symbolic link link'],
    ['apps/link.yaml', 'is a symbolic link'],
    ['module/a.yaml', 'crosses the submodule module'],
    ['module', 'is a submodule'],
    ['apps/a.yaml/b', 'goes below the file apps/a.yaml'],
    ['big', 'has 99 bytes, more than is read'],
    ['apps/b.yaml', 'is not in the repository'],
    ['apps', 'is not in the repository'],
  ];
  it.each(rows)('%j %s', (path, message) =>
    expect(resolveFile(tree, path)).toMatchObject({ kind: 'Refused', message }),
  );

  it('gives the bytes of a plain file', () =>
    expect(resolveFile(tree, 'apps/a.yaml')).toMatchObject({ kind: 'File' }));
});

describe('what is read as YAML', () => {
  const tree = aTree({
    'charts/x/Chart.yaml': 'name: x\n',
    'charts/x/templates/a.yaml': 'replicas: 3\n',
    'templates/a.yaml': 'replicas: 3\n',
    'README.md': 'a: b\n',
    'latin.yaml': Uint8Array.from([0x61, 0x3a, 0x20, 0xe9, 0x0a]),
    'utf16.yaml': Uint8Array.from([0xff, 0xfe, 0x61, 0x00]),
    'mac.yaml': 'a: 1\rb: 2\r',
    'lines.yaml': 'a: 1 # \u2028b: 2\n',
    'bell.yaml': 'a: "\x07"\n',
  });
  it.each([
    ['charts/x/templates/a.yaml', "is a chart's template"],
    ['README.md', 'is neither a YAML nor a JSON file'],
    ['latin.yaml', 'is not UTF-8'],
    ['utf16.yaml', 'is not UTF-8'],
    ['mac.yaml', 'has line ends that the versions of YAML read differently'],
    ['lines.yaml', 'has line ends that the versions of YAML read differently'],
    ['bell.yaml', 'has control characters'],
  ])('%s %s', (path, message) =>
    expect(readableText(tree, path)).toMatchObject({ reason: 'Unreadable', message }),
  );

  it('is also a folder called templates that belongs to no chart', () =>
    expect(readableText(tree, 'templates/a.yaml')).toMatchObject({ kind: 'Text' }));
});
