import { describe, expect, test } from 'vitest';
import { readProxies } from './proxies.ts';

const proxyOf = (env: Readonly<Record<string, string>>, url: string) => readProxies(env)(new URL(url));
const PROXY = 'http://proxy.example.org:3128';

test.each([
  [{ HTTPS_PROXY: PROXY }, 'https://gitlab.example.org/', PROXY],
  [{ https_proxy: PROXY, HTTPS_PROXY: 'http://other.example.org' }, 'https://gitlab.example.org/', PROXY],
  [{ HTTPS_PROXY: PROXY }, 'http://gitlab.example.org/', undefined],
  [{ HTTP_PROXY: PROXY }, 'http://gitlab.example.org/', PROXY],
  [{ HTTP_PROXY: PROXY }, 'https://gitlab.example.org/', undefined],
  [{ HTTPS_PROXY: 'proxy.example.org:3128' }, 'https://gitlab.example.org/', PROXY],
  [{ HTTPS_PROXY: '' }, 'https://gitlab.example.org/', undefined],
  [{}, 'https://gitlab.example.org/', undefined],
])('%j sends %s through %s', (env, url, proxy) => {
  expect(proxyOf(env, url)).toBe(proxy);
});

describe('NO_PROXY', () => {
  test.each([
    ['example.org', 'https://example.org/', true],
    ['example.org', 'https://gitlab.example.org/', true],
    ['example.org', 'https://notexample.org/', false],
    ['example.org.', 'https://EXAMPLE.org./', true],
    ['.example.org', 'https://gitlab.example.org/', true],
    ['.example.org', 'https://example.org/', false],
    ['*.example.org', 'https://gitlab.example.org/', true],
    ['*.example.org', 'https://example.org/', false],
    ['example.org:8443', 'https://example.org:8443/', true],
    ['example.org:8443', 'https://example.org/', false],
    ['example.org:443', 'https://example.org/', true],
    ['10.0.0.0/8', 'https://10.1.2.3/', true],
    ['10.0.0.0/8', 'https://11.1.2.3/', false],
    ['fd00::/8', 'https://[fd12::1]/', true],
    ['10.1.2.3', 'https://10.1.2.3/', true],
    ['[fd12::1]:443', 'https://[fd12::1]/', true],
    ['fd12::1', 'https://[fd12::1]/', true],
    ['a.example, b.example  c.example', 'https://c.example/', true],
    ['*', 'https://gitlab.example.org/', true],
    ['', 'https://gitlab.example.org/', false],
  ])('%s leaves out %s: %s', (noProxy, url, direct) => {
    expect(proxyOf({ HTTPS_PROXY: PROXY, NO_PROXY: noProxy }, url)).toBe(direct ? undefined : PROXY);
  });

  test('is not needed for this machine', () => {
    for (const url of ['https://localhost:1/', 'https://127.0.0.1:1/', 'https://[::1]:1/'])
      expect(proxyOf({ HTTPS_PROXY: PROXY }, url)).toBeUndefined();
  });
});

test('a proxy of another kind is refused, and its password not shown', () => {
  expect(() => readProxies({ HTTPS_PROXY: 'socks5://me:secret-1@proxy.example.org' })).toThrow(
    'HTTPS_PROXY: expected an http:// or https:// address of a proxy; correct it or unset it',
  );
});
