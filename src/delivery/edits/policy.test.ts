import { describe, expect, it } from 'vitest';
import { type EditPolicy, normalPath, pathRefusal } from './policy.ts';
import { DENIED_PATHS, deniedBy } from './reach/out-of-reach.ts';
import { pathGlob } from './reach/path-glob.ts';

const policy = (over: Partial<EditPolicy> = {}): EditPolicy => ({
  allow: ['apps/**'],
  deny: [],
  scope: ['apps/a.yaml', 'apps/b.yaml'],
  evidence: '',
  ...over,
});
const message = (path: string, over: Partial<EditPolicy> = {}): string | undefined =>
  pathRefusal(policy(over), path)?.message;

describe('patterns of paths', () => {
  const rows: readonly (readonly [pattern: string, path: string, matches: boolean])[] = [
    ['a/b.yaml', 'a/b.yaml', true],
    ['a/b.yaml', 'a/b.yaml2', false],
    ['a/b.yaml', 'x/a/b.yaml', false],
    ['a/**', 'a/b', true],
    ['a/**', 'a/b/c/d', true],
    ['a/**', 'a', false],
    ['a/**', 'ab/c', false],
    ['**/name', 'name', true],
    ['**/name', 'x/y/name', true],
    ['**/name', 'x/name/y', false],
    ['**/dir/**', 'dir/x', true],
    ['**/dir/**', 'a/b/dir/c/d', true],
    ['**/dir/**', 'dir', false],
    ['**/dir/**', 'a/dir', false],
    ['a/*.yaml', 'a/b.yaml', true],
    ['a/*.yaml', 'a/b/c.yaml', false],
    ['*', 'x', true],
    ['*', 'x/y', false],
    ['a/?.yaml', 'a/b.yaml', true],
    ['a/?.yaml', 'a/bb.yaml', false],
    ['**', 'any/thing', true],
    ['a/b*c*d', 'a/bxcxcxd', true],
    ['a.yaml', 'axyaml', false],
  ];
  it.each(rows)('%s and %s: %s', (pattern, path, matches) => expect(pathGlob(pattern)(path)).toBe(matches));

  it.each(['a/**/b', 'a**', '**b/c', 'a//b'])('refuses %s, which would never match', (pattern) =>
    expect(() => pathGlob(pattern)).toThrow('matches nothing'),
  );
});

describe('G1: gate, CI and merge policy stay out of reach', () => {
  const paths = [
    '.gitlab-ci.yml',
    'apps/.gitlab-ci.yml',
    'ci/build.gitlab-ci.yml',
    '.gitlab/CODEOWNERS',
    'apps/.gitlab/agents/a/config.yaml',
    '.github/workflows/a.yaml',
    'CODEOWNERS',
    'docs/CODEOWNERS',
    'renovate.json5',
    '.tekton/push.yaml',
    'Jenkinsfile',
    'apps/hummingbird/workflow.yaml',
    '.gitmodules',
  ];
  it.each(paths)('%s, although everything is allowed and in scope', (path) =>
    expect(pathRefusal(policy({ allow: ['**'], scope: paths }), path)).toEqual({
      reason: 'PathDenied',
      message: expect.stringContaining('no edit ever reaches'),
    }),
  );

  it.each([
    '.GitLab-CI.yml',
    './.gitlab-ci.yml',
    '././/.gitlab-ci.yml',
    '.gitlab-ci.yml.',
    '.gitlab-ci.yml ',
    '.git\u200blab-ci.yml',
    '.gitlab-ci.\uff59ml',
    '.GITHUB/workflows/a.yaml',
    'CodeOwners',
  ])('also spelled %j', (path) => expect(deniedBy(normalPath(path))).toBeDefined());

  it('has patterns that match something', () => {
    for (const pattern of DENIED_PATHS) expect(() => pathGlob(pattern)).not.toThrow();
  });
});

describe('G2: nothing outside of the chosen area is touched', () => {
  it('lets through what is allowed and in scope', () => {
    expect(message('apps/a.yaml')).toBeUndefined();
    expect(message('./apps/a.yaml')).toBeUndefined();
  });

  it('refuses what no pattern allows', () =>
    expect(message('apps/a.yaml', { allow: ['charts/**'] })).toContain(
      'no path that the configuration allows',
    ));

  it('refuses everything when nothing is allowed', () =>
    expect(message('apps/a.yaml', { allow: [] })).toBe('the configuration allows no path'));

  it('refuses a file that the merge request does not change, however much is allowed', () =>
    expect(message('apps/c.yaml', { allow: ['**'] })).toContain('does not change this file'));

  it('takes an empty scope for an unknown one, never for everything', () =>
    expect(message('apps/a.yaml', { scope: [] })).toContain('nothing is in scope'));

  it('denies before it allows, in any spelling of case', () => {
    expect(message('apps/a.yaml', { deny: ['apps/*.yaml'] })).toBe('the configuration denies apps/*.yaml');
    expect(message('apps/A.yaml', { deny: ['apps/a.yaml'], scope: ['apps/A.yaml'] })).toContain('denies');
  });

  it('is exact in what it allows', () =>
    expect(message('Apps/a.yaml', { scope: ['Apps/a.yaml'] })).toContain('no path'));
});
