import type { LookupAddress } from 'node:dns';
import { expect, test } from 'vitest';
import { checkedLookup, RefusedAddressError } from './dispatcher.ts';

const ALL = [
  { address: '169.254.169.254', family: 4 },
  { address: '10.0.0.1', family: 4 },
  { address: '2606:4700::1111', family: 6 },
  { address: '127.0.0.1', family: 4 },
];

test.each([
  ['Public', ['2606:4700::1111'], 'Public'],
  ['Private', ['10.0.0.1', '2606:4700::1111'], 'Private'],
  ['Loopback', ['10.0.0.1', '2606:4700::1111', '127.0.0.1'], 'Loopback'],
] as const)('of a name with many addresses, %s connects to %j only', (limit, allowed, farthest) => {
  const seen: string[] = [];
  const lookup = checkedLookup(
    limit,
    (_name, _options, callback) => callback(null, ALL),
    (_name, reach) => seen.push(reach),
  );
  lookup('many.test', { all: true }, (_error, addresses) => {
    expect(addresses).toEqual(ALL.filter(({ address }) => allowed.some((one) => one === address)));
  });
  lookup('many.test', {}, (_error, address) => expect(address).toBe(allowed[0]));
  expect(seen).toEqual([farthest, farthest]);
  expect.assertions(3);
});

test('a name that no address is left of fails with each and why', () => {
  const inner: LookupAddress[] = ALL.filter(({ family }) => family === 4);
  const lookup = checkedLookup('Public', (_name, _options, callback) => callback(null, inner), expect.fail);
  lookup('inside.test', { all: true }, (error) => {
    expect(error).toBeInstanceOf(RefusedAddressError);
    expect(error?.message).toBe(
      'inside.test: address 169.254.169.254 may not be reached; address 10.0.0.1 may not be reached: private, where only public addresses are allowed; address 127.0.0.1 may not be reached: loopback, where only public addresses are allowed',
    );
  });
  expect.assertions(2);
});

test('what the name server says goes on', () => {
  const failed = new Error('getaddrinfo ENOTFOUND none.test');
  const lookup = checkedLookup('Public', (_name, _options, callback) => callback(failed, []), expect.fail);
  lookup('none.test', {}, (error) => expect(error).toBe(failed));
  expect.assertions(1);
});
