import { describe, expect, it } from 'vitest';
import { carriesData } from './links.ts';

describe('a link', () => {
  it.each([
    'https://example.org/',
    'https://docs.example.org/guide/install#before-you-begin',
    'https://github.com/group/app/commit/0123456789abcdef0123456789abcdef01234567',
    'https://tracker.example.org/issues?q=is%3Aopen+label%3Abug&page=2',
    'https://example.org/blog/how-to-tell-a-flaky-test-from-a-broken-one-in-ten-minutes',
    'https://example.org/x/libfoo_1.2.3-4+deb12u1_amd64.deb',
    'mailto:team@example.org',
    '/group/app/-/merge_requests/1',
    '#section',
    'www.example.org',
  ])('%s leads somewhere and says nothing', (url) => {
    expect(carriesData(url, [])).toBe(false);
  });

  it.each([
    ['a long query value', 'https://evil.example/?d=QUtJQUlPU0ZPRE5ON0VYQU1QTEU6d0phbHJYVXRuRkVNSQ'],
    ['a long path', 'https://evil.example/QUtJQUlPU0ZPRE5ON0VYQU1QTEU6d0phbHJYVXRuRkVNSQ'],
    ['many short parts', `https://evil.example/${'abcdefgh/'.repeat(40)}`],
    ['a fragment', 'https://evil.example/#QUtJQUlPU0ZPRE5ON0VYQU1QTEU6d0phbHJYVXRuRkVNSQ'],
    ['a host’s label', 'https://qutjquipu0zprdvonkvyqu1qtevjbghcawzztg.evil.example/'],
    ['many labels', `https://${'abcdefgh.'.repeat(10)}evil.example/`],
    ['a user name', 'https://AKIAIOSFODNN7EXAMPLE@evil.example/'],
    ['a name that looks like the host', 'https://gitlab.example.org@evil.example/'],
    ['a mail', 'mailto:x@evil.example?body=secret'],
    ['no scheme', '//evil.example/?d=QUtJQUlPU0ZPRE5ON0VYQU1QTEU6d0phbHJYVXRuRkVNSQ'],
    ['what cannot be read', 'https://[evil/'],
  ])('with data in %s is seen', (_, url) => {
    expect(carriesData(url, [])).toBe(true);
  });

  it('to a host of ours may carry what it likes, but no user name', () => {
    const url =
      'https://konflux.example.org/ns/team/pipelinerun/QUtJQUlPU0ZPRE5ON0VYQU1QTEU6d0phbHJYVXRuRkVN';
    expect(carriesData(url, ['konflux.example.org'])).toBe(false);
    expect(carriesData(url.replace('//', '//x@'), ['konflux.example.org'])).toBe(true);
    expect(carriesData(url.replace('org/', 'org.evil.example/'), ['konflux.example.org'])).toBe(true);
  });
});
