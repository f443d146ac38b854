import ipaddr from 'ipaddr.js';

/** How far inside a network an address lies, from the outside in. */
export type Reach = 'Public' | 'Private' | 'Loopback';

const INWARDS: Readonly<Record<Reach, number>> = { Public: 0, Private: 1, Loopback: 2 };

/** The one of two that lies less far inside. */
export const outermost = (one: Reach, other: Reach): Reach => (INWARDS[one] <= INWARDS[other] ? one : other);

/** The one of several that lies farthest inside; `Public` for none. */
export const innermost = (all: Iterable<Reach>): Reach =>
  [...all].reduce<Reach>((inner, one) => (INWARDS[one] > INWARDS[inner] ? one : inner), 'Public');

/**
 * Where an address lies; undefined for those where no server of anybody's lives and an attacker likes to look: cloud
 * metadata services, link-local, unspecified, multicast, broadcast and reserved ones, and forms of IPv6 that hide an
 * IPv4 address from this look (6to4, Teredo, local NAT64, IPv4-compatible). Mapped and NAT64 addresses are judged
 * by the IPv4 address in them. Throws for what is no address.
 */
export function reachOf(address: string): Reach | undefined {
  const parsed = ipaddr.parse(address.replace(/%.*$/, ''));
  if (parsed instanceof ipaddr.IPv4) return reachOfV4(parsed);
  const inner = embeddedV4(parsed);
  if (inner !== undefined) return reachOfV4(inner);
  if (METADATA.has(parsed.toString())) return undefined;
  switch (parsed.range()) {
    case 'unicast':
      // ::/96, the deprecated form that a kernel may still take for IPv4.
      return parsed.parts.slice(0, 6).every((part) => part === 0) ? undefined : 'Public';
    case 'loopback':
      return 'Loopback';
    case 'uniqueLocal':
      return 'Private';
    default:
      return parsed.match(SITE_LOCAL) ? 'Private' : undefined;
  }
}

/**
 * Metadata and host services of clouds outside the link-local range, as their documentation names them: AWS (IPv6),
 * Alibaba Cloud, Azure.
 */
const METADATA = new Set(['fd00:ec2::254', '100.100.100.200', '168.63.129.16']);

function reachOfV4(address: ipaddr.IPv4): Reach | undefined {
  if (METADATA.has(address.toString())) return undefined;
  switch (address.range()) {
    case 'unicast':
      return 'Public';
    case 'loopback':
      return 'Loopback';
    case 'private':
    case 'carrierGradeNat':
      return 'Private';
    default:
      return undefined;
  }
}

/** Deprecated, and still in use here and there. */
const SITE_LOCAL = ipaddr.IPv6.parseCIDR('fec0::/10');
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

function embeddedV4(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  return address.match(NAT64) ? new ipaddr.IPv4(address.toByteArray().slice(12)) : undefined;
}

/** Why a resolved address may not be connected to by somebody who reaches so far; undefined when it may. */
export function refusedAddress(address: string, limit: Reach): string | undefined {
  const reach = reachOf(address);
  if (reach === undefined) return `address ${address} may not be reached`;
  if (INWARDS[reach] <= INWARDS[limit]) return undefined;
  return `address ${address} may not be reached: ${reach.toLowerCase()}, where ${WITHIN[limit]}`;
}

const WITHIN: Readonly<Record<Reach, string>> = {
  Public: 'only public addresses are allowed',
  Private: 'only public and private addresses are allowed',
  Loopback: 'any is allowed',
};

/** Where the host of a URL lies by itself: literal addresses, and names that only ever mean this machine. */
export function literalOf(url: URL): string | undefined {
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  if (/^(.*\.)?localhost\.?$/.test(host)) return '127.0.0.1';
  return ipaddr.isValid(host) ? host : undefined;
}

/** Why the host of a URL may not be connected to; undefined for other names, which are looked at when resolved. */
export function refusedHost(url: URL, limit: Reach): string | undefined {
  const literal = literalOf(url);
  const refused = literal && refusedAddress(literal, limit);
  return refused && url.hostname.includes('localhost') ? `${url.hostname}: ${refused}` : refused;
}
