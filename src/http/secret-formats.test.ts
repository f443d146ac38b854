import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { createRedactor } from './redaction.ts';
import { redactFormats } from './secret-formats.ts';

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const bodyLines = privateKey.trim().split('\n').slice(1, -1);

/** No line of the key's body is in the text. */
function expectNoKey(text: string): void {
  for (const line of bodyLines) expect(text).not.toContain(line);
}

describe('a private key', () => {
  it('goes as a whole, and what is around it stays', () => {
    expect(redactFormats(`before\n${privateKey}after`)).toBe('before\n[redacted private key]\nafter');
  });

  it('goes in JSON, where its lines end in \\n', () => {
    const json = redactFormats(JSON.stringify({ stdout: `x ${privateKey} y`, n: 1 }));
    expect(JSON.parse(json)).toEqual({ stdout: 'x [redacted private key]\n y', n: 1 });
  });

  it('goes with the headers of the older form', () => {
    const old = `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n${bodyLines.join('\n')}\n-----END RSA PRIVATE KEY-----`;
    expect(redactFormats(old)).toBe('[redacted private key]');
  });

  it('goes indented, with Windows line ends, and on one line', () => {
    for (const text of [
      privateKey.replaceAll('\n', '\n    '),
      privateKey.replaceAll('\n', '\r\n'),
      privateKey.replaceAll('\n', ' '),
    ])
      expectNoKey(redactFormats(text));
  });

  it('goes where a preview has cut its end, or its beginning', () => {
    for (let cut = 60; cut < privateKey.length - 40; cut += 97) {
      expectNoKey(redactFormats(`a "b"\n${privateKey.slice(0, cut)}`));
      const tail = redactFormats(`${privateKey.slice(cut)}rest`);
      for (const line of bodyLines.filter((one) => privateKey.indexOf(one) >= cut))
        expect(tail).not.toContain(line);
      expect(tail.endsWith('rest')).toBe(true);
      const json = redactFormats(JSON.stringify(privateKey.slice(cut)));
      for (const line of bodyLines.filter((one) => privateKey.indexOf(one) >= cut))
        expect(json).not.toContain(line);
    }
  });

  it('that is only spoken of stays, and so do public keys and certificates', () => {
    for (const text of [
      'The file begins with -----BEGIN PRIVATE KEY----- and nobody minds.',
      '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----',
      '-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END CERTIFICATE-----',
    ])
      expect(redactFormats(text)).toBe(text);
  });
});

// Put together here, so that no scanner takes this file for a leak.
const made = (prefix: string, rest: string): string => `${prefix}${rest}`;

test.each([
  made('glpat-', 'aB3dE6gH9jK2mN5pQ8sT'),
  made('glrt-', 't1_aB3dE6gH9jK2mN5pQ8sT'),
  made('AKIA', 'IOSFODNN7EXAMPLE'),
  made('sk-', 'proj-aB3dE6gH9jK2mN5pQ8sTaB3dE6gH9jK2'),
  made('sk-ant-', 'api03-aB3dE6gH9jK2mN5pQ8sTaB3dE6gH9jK2'),
  made('AIza', 'SyA1234567890abcdefghijklmnopqrstuv'),
  made('ghp_', 'aB3dE6gH9jK2mN5pQ8sTaB3dE6gH9jK2mN5p'),
  made('xoxb-', '123456789012-abcdefghijkl'),
  made('eyJhbGciOiJIUzI1NiJ9.', 'eyJzdWIiOiJub2JvZHkifQ.c2lnbmF0dXJlLW9mLW5vYm9keQ'),
])('%s is recognised wherever it stands', (token) => {
  for (const text of [`a ${token} b`, `{"t":"${token}"}`, `X=${token}\n`, `(${token})`])
    expect(redactFormats(text)).toBe(text.replace(token, '[redacted]'));
});

test.each([
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a shell
  '${GITLAB_TOKEN}',
  'c2lnLTE=',
  'glpat-',
  'glpat-short',
  'sk-toggleable__label-arrow sk-estimator-doc-link-and-a-long-name',
  'task-0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123',
  'AKIA',
  'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'https://gitlab.example.org/group/app/-/merge_requests/42#note_1001',
])('%s stays as it is', (text) => {
  expect(createRedactor().redact(text)).toBe(text);
});

test('other text stays as it is, whatever it is, and a second pass changes nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (parts) => {
      const text = parts.join('\n');
      expect(redactFormats(text)).toBe(text);
    }),
  );
  const once = redactFormats(`${privateKey} ${made('glpat-', 'aB3dE6gH9jK2mN5pQ8sT')}`);
  expect(redactFormats(once)).toBe(once);
});

test('a megabyte of what looks like a key takes no more than moments', () => {
  const long = `${'A'.repeat(64)}\n`.repeat(16_000);
  const begun = performance.now();
  redactFormats(long);
  redactFormats(`-----BEGIN PRIVATE KEY-----\n${long}`);
  redactFormats(`${long}-----END PRIVATE KEY-----`);
  redactFormats('-----BEGIN PRIVATE KEY-----\n'.repeat(30_000));
  redactFormats('-----END PRIVATE KEY-----\n'.repeat(30_000));
  redactFormats('sk-'.repeat(300_000));
  expect(performance.now() - begun).toBeLessThan(5_000);
});
