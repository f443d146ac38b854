import { expect, test } from 'vitest';
import { SettingsError } from '../settings/operator.ts';
import { proxiesOf } from './proxies.ts';

test('a proxy that cannot be used is a mistake in the settings, an ordinary one is taken', () => {
  expect(() => proxiesOf({ HTTPS_PROXY: 'socks5://proxy.example.org' })).toThrow(SettingsError);
  const proxies = proxiesOf({ HTTPS_PROXY: 'http://proxy.example.org:3128' });
  expect(proxies(new URL('https://gitlab.example.org'))).toBe('http://proxy.example.org:3128');
});
