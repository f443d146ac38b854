import ipaddr from 'ipaddr.js';
import { literalOf, reachOf } from './addresses.ts';

/** Names the proxy through which a URL is reached; undefined: directly. */
export type Proxies = (url: URL) => string | undefined;

export const noProxies: Proxies = () => undefined;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in either case, the lower one first. `NO_PROXY` holds names (with all
 * below them; `*.name` and `.name`: only those), addresses, CIDR ranges, each with a port if wanted, or `*`. This
 * machine itself is never asked for through a proxy. Throws for a proxy that is no http or https address.
 */
export function readProxies(env: Environment): Proxies {
  const https = proxyAddress(env, 'HTTPS_PROXY');
  const http = proxyAddress(env, 'HTTP_PROXY');
  if (https === undefined && http === undefined) return noProxies;
  const exceptions = either(env, 'NO_PROXY')
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(exception);
  return (url) => {
    const proxy = url.protocol === 'https:' ? https : http;
    if (proxy === undefined) return undefined;
    const literal = literalOf(url);
    if (literal !== undefined && reachOf(literal) === 'Loopback') return undefined;
    return exceptions.some((matches) => matches(url)) ? undefined : proxy;
  };
}

const either = (env: Environment, name: string): string => env[name.toLowerCase()] || env[name] || '';

function proxyAddress(env: Environment, name: string): string | undefined {
  const text = either(env, name);
  if (text === '') return undefined;
  // `proxy:3128` is how many write it.
  const address = text.includes('://') ? text : `http://${text}`;
  if (URL.canParse(address) && /^https?:/i.test(address)) return address;
  // Not shown: it may hold a password.
  throw new Error(`${name}: expected an http:// or https:// address of a proxy; correct it or unset it`);
}

type Matches = (url: URL) => boolean;

function exception(entry: string): Matches {
  if (entry === '*') return () => true;
  const range = cidr(entry);
  if (range !== undefined) return (url) => inRange(url, range);
  const [, bracketed, plain, port] = /^(?:\[(.+?)\]|(.+?))(?::(\d+))?$/.exec(entry) ?? [];
  const alone = ipaddr.isValid(entry);
  const host = alone ? entry : (bracketed ?? plain ?? entry);
  const samePort = (url: URL) => alone || port === undefined || portOf(url) === Number(port);
  if (ipaddr.isValid(host)) {
    const address = ipaddr.process(host).toString();
    return (url) => samePort(url) && bareHost(url) === address;
  }
  const name = host
    .replace(/^\*?\./, '')
    .replace(/\.$/, '')
    .toLowerCase();
  const below = name !== host.replace(/\.$/, '').toLowerCase();
  return (url) => {
    const asked = bareHost(url);
    return samePort(url) && ((!below && asked === name) || asked.endsWith(`.${name}`));
  };
}

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

function cidr(entry: string): Range | undefined {
  return ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : undefined;
}

function inRange(url: URL, [base, bits]: Range): boolean {
  const host = bareHost(url);
  if (!ipaddr.isValid(host)) return false;
  const address = ipaddr.process(host);
  return address.kind() === base.kind() && address.match(base, bits);
}

function bareHost(url: URL): string {
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return ipaddr.isValid(host) ? ipaddr.process(host).toString() : host;
}

const portOf = (url: URL): number => Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
