import type { ChartReference } from '../delivery/port.ts';
import type { Destinations, HttpClient } from '../http/client.ts';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** What the fetchers of both kinds share. */
export interface Fetching {
  readonly http: HttpClient;
  readonly within: Destinations;
  readonly login: (url: URL) => Login | undefined;
  /** Registries, as `host:port`, that speak HTTP. */
  readonly plainHttp: readonly string[];
  /** Of a packed chart. */
  readonly maxBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** What a fetcher found: the version that a range came to, and the digest that the source tells. */
export interface FetchedChart {
  readonly version: string;
  readonly bytes: Uint8Array;
  /** In lower case hex; undefined: the source tells none. */
  readonly sha256: string | undefined;
}

/** How a sentence on a chart begins. */
export const named = ({ name, version }: ChartReference): string => `The chart ${name} ${version}`;

export function basic(login: Login | undefined): Readonly<Record<string, string>> {
  if (login === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}` };
}
