import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { innermost, literalOf, type Reach, reachOf, refusedAddress } from './addresses.ts';
import type { Proxies } from './proxies.ts';
import { fingerprintOf, type TlsIdentity } from './tls.ts';

export class RefusedAddressError extends Error {
  override readonly name = 'RefusedAddressError';
}

/** All addresses of a name, as the system resolves it. */
export type Resolve = (
  hostname: string,
  options: { readonly family?: number | 'IPv4' | 'IPv6' | undefined },
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

export const systemResolve: Resolve = (hostname, { family }, callback) =>
  dnsLookup(hostname, { ...(family === undefined ? {} : { family }), all: true }, callback);

/**
 * Keep-alive connections, apart for each reach and TLS identity: one that was allowed for one request serves no
 * stricter one, and nobody speaks over what somebody else has authenticated.
 */
export interface Connections {
  dispatcherFor(url: URL, reach: Reach, tls?: TlsIdentity): Dispatcher;
  /** How far inside the host lies, once it was connected to. What a proxy resolves counts as public. */
  reachOf(url: URL): Reach;
  close(): Promise<void>;
}

export interface ConnectionsOptions {
  readonly proxies: Proxies;
  readonly resolve?: Resolve;
  readonly connectTimeoutMs?: number;
}

/**
 * A name's addresses are looked at where they are resolved for the connection, and the connection is made to one that
 * was looked at: a name that resolves to something else a moment later (DNS rebinding) gains nothing. Literal
 * addresses are judged by the caller, for each hop.
 */
export function createConnections(options: ConnectionsOptions): Connections {
  const timeout = options.connectTimeoutMs ?? 10_000;
  // The client has its own deadlines for each request.
  const common = { keepAliveTimeout: 10_000, headersTimeout: 0, bodyTimeout: 0 };
  const resolved = new Map<string, Reach>();
  const lookup = (reach: Reach) =>
    checkedLookup(reach, options.resolve ?? systemResolve, (hostname, found) =>
      resolved.set(hostname, found),
    );
  const open = new Map<string, Dispatcher>();
  const kept = (key: string, make: () => Dispatcher): Dispatcher => {
    const known = open.get(key) ?? make();
    // Again at the end: the first is the one that nobody has asked for longest.
    open.delete(key);
    open.set(key, known);
    const [eldest] = open;
    if (open.size > MAX_KEPT && eldest !== undefined) {
      open.delete(eldest[0]);
      // Waits for the requests that are under way.
      eldest[1].close().catch(() => undefined);
    }
    return known;
  };
  return {
    dispatcherFor(url, reach, tls) {
      const own = tls === undefined ? '' : ` ${fingerprintOf(tls)}`;
      const { ca, ...rest } = tls ?? {};
      const identity = { ...rest, ...(ca === undefined ? {} : { ca: [...ca] }) };
      const proxy = options.proxies(url);
      if (proxy !== undefined)
        return kept(
          `${proxy}${own}`,
          () =>
            new ProxyAgent({ ...common, uri: proxy, connectTimeout: timeout, requestTls: { ...identity } }),
        );
      return kept(
        `${reach}${own}`,
        () => new Agent({ ...common, connect: { ...identity, lookup: lookup(reach), timeout } }),
      );
    },
    reachOf(url) {
      const literal = literalOf(url);
      if (literal !== undefined) return reachOf(literal) ?? 'Public';
      return resolved.get(url.hostname) ?? 'Public';
    },
    close: async () => void (await Promise.all([...open.values()].map((one) => one.close()))),
  };
}

/** Certificates are renewed, and each new one has connections of its own. */
const MAX_KEPT = 64;

/** Gives a connection those addresses of a name only that lie within `limit`; fails with RefusedAddressError when none does. */
export function checkedLookup(
  limit: Reach,
  resolve: Resolve,
  onResolved: (hostname: string, reach: Reach) => void,
): LookupFunction {
  return (hostname, { all, family }, callback) => {
    resolve(hostname, { family }, (error, addresses) => {
      if (error) return callback(error, '');
      const allowed = addresses.filter(({ address }) => refusedAddress(address, limit) === undefined);
      const first = allowed[0];
      if (first === undefined) {
        const why = addresses.map(({ address }) => refusedAddress(address, limit)).join('; ');
        return callback(new RefusedAddressError(`${hostname}: ${why || 'resolves to nothing'}`), '');
      }
      onResolved(hostname, innermost(allowed.map(({ address }) => reachOf(address) ?? 'Public')));
      if (all) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}
