import { describe, expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import { parseChartYaml } from '../chart/metadata.ts';
import { upstreamSources } from './upstream-sources.ts';

describe('upstreamSources', () => {
  const tree = aTree({
    'apps/web.yaml': 'repoURL: https://github.com/group/app\n',
    'note.md': 'see git.example.org.evil.org, x.hub.example.org and lab.example.org.\n',
  });

  it('are what the chart declares by https, sources before its home, each once', () => {
    const sources = [
      ' https://github.com/a/b ',
      'http://clear.example.org/x',
      'git@github.com:a/b',
      'https://github.com/a/b',
    ];
    expect(upstreamSources({ sources, home: 'https://lab.example.org/c' }, tree)).toEqual([
      { url: 'https://github.com/a/b', named: true },
      { url: 'https://lab.example.org/c', named: true },
    ]);
    expect(upstreamSources({}, tree)).toEqual([]);
  });

  it.each([
    ['nowhere.example.org', false],
    ['git.example.org', false],
    ['hub.example.org', false],
    ['x.hub.example.org', true],
  ])('know that the repository names %s: %s', (host, named) => {
    expect(upstreamSources({ sources: [`https://${host}/a/b`] }, tree)).toEqual([
      { url: `https://${host}/a/b`, named },
    ]);
  });

  it.each([['sources: 3'], ['sources: [{a: 1}]'], ['home: [x]'], ['sources: null\nhome: null']])(
    'cost no chart its reading: %s',
    (odd) => {
      const metadata = parseChartYaml(`name: web\nversion: 1.0.0\n${odd}\n`);
      expect(metadata).toMatchObject({ name: 'web' });
      expect(metadata && upstreamSources(metadata, tree)).toEqual([]);
    },
  );
});
