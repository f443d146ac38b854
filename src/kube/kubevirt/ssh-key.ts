import type { KeyObject } from 'node:crypto';

export interface SshKeyPair {
  /** Text of a private key file in OpenSSH's own format. A secret. */
  readonly privateKey: string;
  /** One line of `authorized_keys`. */
  readonly publicKey: string;
}

const BEGIN = '-----BEGIN OPENSSH PRIVATE KEY-----';
const END = '-----END OPENSSH PRIVATE KEY-----';
const MAGIC = Buffer.from('openssh-key-v1\0');
const ED25519 = 'ssh-ed25519';
const LINE = 70;

/**
 * The `authorized_keys` line of a private key in OpenSSH's format, which holds its public half in clear. The format:
 * PROTOCOL.key of OpenSSH. Throws an error fit for a condition; it never repeats anything of the key.
 */
export function publicKeyOf(privateKey: string): string {
  const text = privateKey.trim();
  if (!text.startsWith(BEGIN) || !text.endsWith(END))
    throw new Error(
      "it is no private key in OpenSSH's format; make one with \"ssh-keygen -t ed25519 -N '' -f key\"",
    );
  const bytes = Buffer.from(text.slice(BEGIN.length, -END.length), 'base64');
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new Error('the private key is damaged');
  const reader = new Reader(bytes.subarray(MAGIC.length));
  const cipher = reader.string().toString('latin1');
  reader.string(); // the name of the key derivation
  reader.string(); // and its options
  if (cipher !== 'none') throw new Error('the private key is protected by a passphrase; take it off');
  if (reader.number() !== 1) throw new Error('the private key file must hold exactly one key');
  const blob = reader.string();
  const type = new Reader(blob).string().toString('latin1');
  if (!/^[a-z0-9@.-]{1,64}$/.test(type)) throw new Error('the private key is damaged');
  return `${type} ${blob.toString('base64')}`;
}

/** An ed25519 pair in OpenSSH's formats. `key` is a fresh private key of that kind; `check` any random number. */
export function sshKeyPair(key: KeyObject, check: number): SshKeyPair {
  const { d, x } = key.export({ format: 'jwk' });
  if (key.asymmetricKeyType !== 'ed25519' || d === undefined || x === undefined)
    throw new Error('an ed25519 private key is needed');
  const publicBytes = Buffer.from(x, 'base64url');
  const blob = Buffer.concat([sshString(ED25519), sshString(publicBytes)]);
  const secret = [
    ...[uint32(check), uint32(check), sshString(ED25519), sshString(publicBytes)],
    ...[sshString(Buffer.concat([Buffer.from(d, 'base64url'), publicBytes])), sshString('')],
  ];
  const bytes = Buffer.concat([
    ...[MAGIC, sshString('none'), sshString('none'), sshString(''), uint32(1), sshString(blob)],
    sshString(padded(Buffer.concat(secret))),
  ]);
  const lines = bytes.toString('base64').match(new RegExp(`.{1,${LINE}}`, 'g')) ?? [];
  return {
    privateKey: `${[BEGIN, ...lines, END].join('\n')}\n`,
    publicKey: `${ED25519} ${blob.toString('base64')}`,
  };
}

/** To the cipher's block size, which is 8 for none, with 1, 2, 3… */
function padded(secret: Buffer): Buffer {
  const missing = (8 - (secret.length % 8)) % 8;
  return Buffer.concat([secret, Buffer.from(Array.from({ length: missing }, (_, at) => at + 1))]);
}

function sshString(value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'latin1') : value;
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  number(): number {
    if (this.#at + 4 > this.#bytes.length) throw new Error('the private key is damaged');
    this.#at += 4;
    return this.#bytes.readUInt32BE(this.#at - 4);
  }

  string(): Buffer {
    const length = this.number();
    if (this.#at + length > this.#bytes.length) throw new Error('the private key is damaged');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
