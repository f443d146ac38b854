import { createHash } from 'node:crypto';
import {
  type ChartArchive,
  type ChartReference,
  type ChartSource,
  ChartUnavailableError,
} from '../delivery/port.ts';
import type { Destinations, HttpClient } from '../http/client.ts';
import { HttpError } from '../http/errors.ts';
import { type FetchedChart, type Fetching, type Login, named } from './fetching.ts';
import { fromIndex } from './index-file.ts';
import { fromRegistry } from './oci.ts';

export interface ChartSourceOptions {
  readonly http: HttpClient;
  /** Where chart repositories may lie, redirects included. Default: public addresses, by https. */
  readonly within?: Destinations;
  /** User and password for an address, where a repository wants one. They go there and to the token service it names. */
  readonly login?: (url: URL) => Login | undefined;
  /** Registries, as `host:port`, that speak HTTP; `within` has to let them. Default: none. */
  readonly plainHttp?: readonly string[];
  /** Of a packed chart, default 16 MiB. */
  readonly maxBytes?: number;
}

/** Charts of HTTP repositories and OCI registries. */
export function createChartSource(options: ChartSourceOptions): ChartSource {
  const { http, within = {}, login = () => undefined, plainHttp = [], maxBytes = 16 * 1024 * 1024 } = options;
  return {
    async fetch(reference, signal) {
      const fetching: Fetching = { http, within, login, plainHttp, maxBytes, signal };
      try {
        return checked(reference, await fetchChart(reference, fetching));
      } catch (error) {
        if (error instanceof HttpError) throw unavailable(reference, error);
        throw error;
      }
    },
  };
}

async function fetchChart(reference: ChartReference, fetching: Fetching): Promise<FetchedChart> {
  if (/^oci:\/\//i.test(reference.repository)) return await fromRegistry(reference, fetching);
  if (/^https?:\/\//i.test(reference.repository)) return await fromIndex(reference, fetching);
  throw new ChartUnavailableError(
    `${named(reference)} cannot be fetched: ${reference.repository} is neither an https:// nor an oci:// address.`,
  );
}

function checked(reference: ChartReference, { version, bytes, sha256 }: FetchedChart): ChartArchive {
  const found = createHash('sha256').update(bytes).digest('hex');
  if (sha256 !== undefined && sha256 !== found)
    throw new ChartUnavailableError(
      `${named(reference)} is not what its repository says: its SHA-256 is ${found}, and should be ${sha256}.`,
    );
  return { reference: { ...reference, version }, bytes, sha256: found };
}

function unavailable(reference: ChartReference, error: HttpError): ChartUnavailableError {
  return new ChartUnavailableError(`${named(reference)} cannot be fetched: ${error.message}.`, {
    cause: error,
  });
}
