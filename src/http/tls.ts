import { createHash } from 'node:crypto';

/** Whom a server must be signed by, and who we are to it, where that is not what the system says. PEM throughout. */
export interface TlsIdentity {
  /** All authorities that count: the system's own count only when they are among them. */
  readonly ca?: readonly string[];
  /** Certificate of the client, with its chain. */
  readonly cert?: string;
  /** Secret. */
  readonly key?: string;
  /** Name that the server's certificate must carry, when it is not the URL's host. */
  readonly servername?: string;
  /** False takes any certificate: only where somebody has written that down. */
  readonly rejectUnauthorized?: boolean;
}

const known = new WeakMap<TlsIdentity, string>();

/** The same for the same identity, different for different ones; nothing of the key can be read from it. */
export function fingerprintOf(tls: TlsIdentity): string {
  const before = known.get(tls);
  if (before !== undefined) return before;
  const { ca, cert, key, servername, rejectUnauthorized } = tls;
  const all = JSON.stringify([ca, cert, key, servername, rejectUnauthorized].map((part) => part ?? null));
  const fingerprint = createHash('sha256').update(all).digest('hex');
  known.set(tls, fingerprint);
  return fingerprint;
}
