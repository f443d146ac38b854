import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { type AddressPolicy, refusedLiteral } from './addresses.ts';

export class RefusedAddressError extends Error {
  override readonly name = 'RefusedAddressError';
}

/**
 * Keep-alive connections whose resolved address is checked at connect time, so that a name that resolves to
 * another address later (DNS rebinding) is checked again. Literal addresses are checked by the client.
 */
export function createDispatcher(options: {
  readonly allow: AddressPolicy;
  readonly connectTimeoutMs?: number;
}): Dispatcher {
  const lookup: LookupFunction = (hostname, lookupOptions, callback) => {
    dnsLookup(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
      if (error) return callback(error, '');
      const allowed = addresses.filter(({ address }) => refusedLiteral(address, options.allow) === undefined);
      const first = allowed[0];
      if (first === undefined) {
        const shown = addresses.map(({ address }) => address).join(', ');
        return callback(
          new RefusedAddressError(`${hostname} resolves to ${shown}, which may not be reached`),
          '',
        );
      }
      if (lookupOptions.all) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
  return new Agent({
    connect: { lookup, timeout: options.connectTimeoutMs ?? 10_000 },
    keepAliveTimeout: 10_000,
    // The client has its own deadlines per request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
