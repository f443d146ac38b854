import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { publicKeyOf, sshKeyPair } from './ssh-key.ts';

const folder = mkdtempSync(join(tmpdir(), 'ssh-key-'));
afterAll(() => rmSync(folder, { recursive: true }));

const aPair = () => sshKeyPair(generateKeyPairSync('ed25519').privateKey, 0xdeadbeef);
const keygen = (...args: readonly string[]) => spawnSync('ssh-keygen', args, { encoding: 'utf8' });

function made(name: string, ...args: readonly string[]) {
  const file = join(folder, name);
  expect(keygen('-q', '-f', file, ...args).status).toBe(0);
  return { privateKey: readFileSync(file, 'utf8'), publicKey: readFileSync(`${file}.pub`, 'utf8') };
}

describe('a key pair of ours', () => {
  it('is one that ssh-keygen reads, with the same public key', () => {
    const pair = aPair();
    const file = join(folder, 'ours');
    writeFileSync(file, pair.privateKey, { mode: 0o600 });
    expect(keygen('-y', '-f', file).stdout.trim()).toBe(pair.publicKey);
  });
  it('differs from the next one', () => {
    expect(aPair().publicKey).not.toBe(aPair().publicKey);
  });
  it('has the public half in it', () => {
    const pair = aPair();
    expect(publicKeyOf(pair.privateKey)).toBe(pair.publicKey);
  });
});

describe("the public half of ssh-keygen's", () => {
  it.each(['ed25519', 'ecdsa', 'rsa'])('%s keys is found', (type) => {
    const { privateKey, publicKey } = made(type, '-t', type, '-N', '', '-C', 'a comment');
    expect(`${publicKeyOf(privateKey)} a comment`).toBe(publicKey.trim());
    expect(publicKeyOf(privateKey.replaceAll('\n', '\r\n'))).toBe(publicKeyOf(privateKey));
  });
});

describe('what is no usable key is refused without repeating it:', () => {
  const whole = aPair().privateKey;
  it.each([
    ['one with a passphrase', () => made('locked', '-t', 'ed25519', '-N', 'secret').privateKey, 'passphrase'],
    [
      'one in another format',
      () => made('pem', '-t', 'ecdsa', '-m', 'PEM', '-N', '').privateKey,
      'ssh-keygen',
    ],
    ['a public key', () => aPair().publicKey, 'ssh-keygen'],
    ['nothing', () => '', 'ssh-keygen'],
    [
      'one that was cut',
      () => whole.replace(/\n.*\n.*\n(-----END)/, '\n$1').replace(/^(-+BEGIN.*\n.{20})[^-]*/, '$1\n'),
      'damaged',
    ],
    ['one with other bytes', () => whole.replace(/\nb3Bl/, '\nAAAA'), 'damaged'],
  ])('%s', (_name, key, why) => {
    const text = key();
    expect(() => publicKeyOf(text)).toThrow(why);
    try {
      publicKeyOf(text);
    } catch (error) {
      for (const line of text.split('\n').filter((each) => !each.startsWith('---') && each.length > 8))
        expect(String(error)).not.toContain(line);
    }
  });
});
