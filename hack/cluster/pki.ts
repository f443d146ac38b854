import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.ts';

/** A certificate and its private key, as PEM files. */
export interface KeyPair {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Authority {
  readonly caFile: string;
  /** Issues a certificate signed by this authority; names are "IP:10.0.0.1" or "DNS:host", `organization` is a client's group. */
  issue(request: {
    readonly name: string;
    readonly commonName: string;
    readonly organization?: string;
    readonly names?: readonly string[];
  }): Promise<KeyPair>;
}

/** A fresh certificate authority whose files live in `directory`; ECDSA P-256 throughout, a year long. */
export async function createAuthority(directory: string): Promise<Authority> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const caFile = join(directory, 'ca.crt');
  const caKey = writeKey(directory, 'ca');
  const validity = ['-days', '365'];
  await run([
    ...[
      'openssl',
      'req',
      '-x509',
      '-new',
      '-key',
      caKey,
      '-subj',
      '/CN=hummingbird-cluster-ca',
      '-out',
      caFile,
    ],
    ...[...validity, '-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
  ]);
  return {
    caFile,
    async issue({ name, commonName, organization, names = [] }) {
      const keyFile = writeKey(directory, name);
      const certFile = join(directory, `${name}.crt`);
      const extensions = join(directory, `${name}.ext`);
      writeFileSync(
        extensions,
        [
          'basicConstraints=critical,CA:FALSE',
          'keyUsage=critical,digitalSignature',
          'extendedKeyUsage=serverAuth,clientAuth',
          ...(names.length > 0 ? [`subjectAltName=${names.join(',')}`] : []),
        ].join('\n'),
      );
      const subject = `${organization === undefined ? '' : `/O=${organization}`}/CN=${commonName}`;
      const request = await run(['openssl', 'req', '-new', '-key', keyFile, '-subj', subject]);
      await run(
        [
          ...['openssl', 'x509', '-req', '-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-out', certFile],
          ...[...validity, '-extfile', extensions],
        ],
        { stdin: request },
      );
      return { certFile, keyFile };
    },
  };
}

/** A key pair for signing ServiceAccount tokens: the private key's file and the public key's. */
export function createSigningKey(directory: string): { privateFile: string; publicFile: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const privateFile = join(directory, 'service-accounts.key');
  const publicFile = join(directory, 'service-accounts.pub');
  writeFileSync(privateFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(publicFile, publicKey.export({ type: 'spki', format: 'pem' }));
  return { privateFile, publicFile };
}

/** A PEM file as the base64 that kubeconfig's `…-data` fields hold. */
export function asKubeconfigData(file: string): string {
  return readFileSync(file).toString('base64');
}

function writeKey(directory: string, name: string): string {
  const file = join(directory, `${name}.key`);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return file;
}
