import { describe, expect, test } from 'vitest';
import { innermost, outermost, reachOf, refusedHost } from './addresses.ts';

/** Spellings of an address in a URL, and beside each a harmless one of the same make. */
const SPELLINGS: readonly (readonly [string, string, string])[] = [
  ['decimal', 'http://2130706433/', 'http://134744072/'],
  ['octal', 'http://0177.0.0.01/', 'http://010.010.010.010/'],
  ['hexadecimal', 'http://0x7f000001/', 'http://0x08080808/'],
  ['hexadecimal parts', 'http://0x7f.0x0.0x0.0x1/', 'http://0x8.0x8.0x8.0x8/'],
  ['left-out parts', 'http://127.1/', 'http://8.526344/'],
  ['full-width digits', 'http://１２７.０.０.１/', 'http://８.８.８.８/'],
  ['ideographic full stops', 'http://127。0。0。1/', 'http://8。8。8。8/'],
  ['digits in circles', 'http://①②⑦.⓪.⓪.①/', 'http://⑧.⑧.⑧.⑧/'],
  ['percent-encoded digits', 'http://%31%32%37.0.0.1/', 'http://%38.8.8.8/'],
  ['a trailing dot', 'http://127.0.0.1./', 'http://8.8.8.8./'],
  ['a port', 'http://127.0.0.1:8443/', 'http://8.8.8.8:8443/'],
  ['a user before it', 'http://gitlab.example.org@127.0.0.1/', 'http://127.0.0.1@gitlab.example.org/'],
  ['a tab within', 'http://127.0.\t0.1/', 'http://8.8.\t8.8/'],
  ['a line break within', 'http://127.0.0\n.1/', 'http://8.8.8\n.8/'],
  ['backslashes', 'http:\\\\127.0.0.1\\@gitlab.example.org/', 'http:\\\\gitlab.example.org\\@127.0.0.1/'],
  ['IPv6', 'http://[::1]/', 'http://[2606:4700::1111]/'],
  ['IPv6 in full', 'http://[0:0:0:0:0:0:0:1]/', 'http://[2606:4700:0:0:0:0:0:1111]/'],
  ['IPv4-mapped IPv6', 'http://[::ffff:127.0.0.1]/', 'http://[::ffff:8.8.8.8]/'],
  ['IPv4-mapped IPv6 in hex', 'http://[::ffff:7f00:1]/', 'http://[::ffff:808:808]/'],
  ['NAT64', 'http://[64:ff9b::127.0.0.1]/', 'http://[64:ff9b::8.8.8.8]/'],
  ['NAT64 in hex', 'http://[64:ff9b::a9fe:a9fe]/', 'http://[64:ff9b::808:808]/'],
  ['the name of this machine', 'http://localhost/', 'http://localhost.example.org/'],
  ['that name in capitals with a dot', 'http://LOCALHOST./', 'http://LOCALHOST.example.org./'],
  ['a name below it', 'http://gitlab.localhost/', 'http://gitlab.localhosts/'],
  ['that name in full-width letters', 'http://ｌｏｃａｌｈｏｓｔ/', 'http://ｌｏｃａｌ.example.org/'],
];

describe('where only public addresses are allowed', () => {
  test.each(SPELLINGS)('%s hides nothing: %j goes nowhere, %j does', (_what, inside, harmless) => {
    expect(refusedHost(new URL(inside), 'Public')).toMatch(/may not be reached/);
    expect(refusedHost(new URL(harmless), 'Public')).toBeUndefined();
  });
});

/** What nobody reaches, whoever asks, and the neighbour of each that is somebody's server. */
const NOWHERE: readonly (readonly [string, string, string])[] = [
  ['link-local, where clouds keep their metadata', '169.254.169.254', '169.253.169.254'],
  ['the metadata service of AWS by IPv6', 'fd00:ec2::254', 'fd00:ec2::253'],
  ['the metadata service of Alibaba Cloud', '100.100.100.200', '100.100.100.201'],
  ['the host service of Azure', '168.63.129.16', '168.63.129.17'],
  ['the metadata service of Oracle Cloud', '192.0.0.192', '192.0.1.192'],
  ['link-local IPv6', 'fe80::1', 'fd80::1'],
  ['link-local IPv6 with its interface', 'fe80::1%eth0', 'fd80::1'],
  ['unspecified', '0.0.0.0', '1.0.0.0'],
  ['this network', '0.1.2.3', '1.1.2.3'],
  ['unspecified IPv6', '::', '::1'],
  ['multicast', '224.0.0.1', '223.0.0.1'],
  ['multicast IPv6', 'ff02::1', 'fd02::1'],
  ['broadcast', '255.255.255.255', '223.255.255.255'],
  ['reserved', '240.0.0.1', '223.0.0.1'],
  ['documentation', '203.0.113.7', '203.0.112.7'],
  ['documentation IPv6', '2001:db8::1', '2001:db9::1'],
  ['mapped link-local', '::ffff:169.254.169.254', '::ffff:169.253.169.254'],
  ['NAT64 of link-local', '64:ff9b::a9fe:a9fe', '64:ff9b::a9fd:a9fe'],
  ['local NAT64, whose IPv4 address may stand anywhere', '64:ff9b:1::a00:1', '64:ff9c:1::a00:1'],
  ['translated IPv4', '::ffff:0:127.0.0.1', '2606:4700::ffff:0:1'],
  ['6to4 of this machine', '2002:7f00:1::', '2003:7f00:1::'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:80ff:fffe', '2001:200:4136:e378:8000:63bf:80ff:fffe'],
  ['IPv4-compatible', '::7f00:1', '2606:4700::7f00:1'],
];

test.each(NOWHERE)('nobody reaches %s: %s; the neighbour is reached: %s', (_what, nowhere, neighbour) => {
  expect(reachOf(nowhere)).toBeUndefined();
  expect(reachOf(neighbour)).toBeDefined();
  const url = (address: string) =>
    new URL(`http://${address.includes(':') ? `[${address.replace(/%.*/, '')}]` : address}/`);
  expect(refusedHost(url(nowhere), 'Loopback')).toMatch(/may not be reached/);
  expect(refusedHost(url(neighbour), 'Loopback')).toBeUndefined();
});

test.each([
  ['8.8.8.8', 'Public'],
  ['2606:4700::1111', 'Public'],
  ['10.1.2.3', 'Private'],
  ['172.16.0.1', 'Private'],
  ['172.32.0.1', 'Public'],
  ['192.168.1.1', 'Private'],
  ['100.64.0.1', 'Private'],
  ['fd12::1', 'Private'],
  ['fec0::1', 'Private'],
  ['::ffff:10.0.0.1', 'Private'],
  ['64:ff9b::10.0.0.1', 'Private'],
  ['127.255.255.254', 'Loopback'],
  ['::1', 'Loopback'],
] as const)('%s is %s', (address, reach) => {
  expect(reachOf(address)).toBe(reach);
});

test('private addresses are reached by who reaches so far, and the refusal says how far', () => {
  const url = new URL('https://10.0.0.1/');
  expect(refusedHost(url, 'Loopback')).toBeUndefined();
  expect(refusedHost(url, 'Private')).toBeUndefined();
  expect(refusedHost(url, 'Public')).toBe(
    'address 10.0.0.1 may not be reached: private, where only public addresses are allowed',
  );
  expect(refusedHost(new URL('https://127.0.0.1/'), 'Private')).toMatch(/loopback/);
});

test('reaches are ordered from the outside in', () => {
  expect(innermost(['Public', 'Loopback', 'Private'])).toBe('Loopback');
  expect(innermost([])).toBe('Public');
  expect(outermost('Private', 'Loopback')).toBe('Private');
  expect(outermost('Private', 'Public')).toBe('Public');
});
