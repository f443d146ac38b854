import { literalOf, type Reach, reachOf } from '../../http/addresses.ts';
import type { Destinations, HttpClient, HttpStream } from '../../http/client.ts';
import type { Source } from '../source-tool.ts';

export interface TestingFarmSource {
  readonly http: HttpClient;
  /** Where results and logs are. Left out: DEFAULT_ARTIFACTS. */
  readonly artifactsUrl?: string;
  /** Where requests are looked up. Left out: DEFAULT_API. */
  readonly apiUrl?: string;
}

export const DEFAULT_ARTIFACTS = 'https://artifacts.osci.redhat.com/testing-farm';
export const DEFAULT_API = 'https://api.testing-farm.io/v0.1';

/** Testing Farm as its tools see it: two addresses, neither of which is left. */
export interface Farm {
  readonly source: Source;
  /** Without a slash at its end. */
  readonly artifactsBase: string;
  readonly artifacts: Destinations;
  /** An artifact, however long. Throws `HttpError`, also for an address or a redirect out of the artifacts. */
  artifact(url: string, signal: AbortSignal): Promise<HttpStream>;
  /** The record of a request, as JSON. Throws `HttpError`. */
  request(id: string, signal: AbortSignal): Promise<unknown>;
}

/** Records are a few KiB. */
const MAX_RECORD_BYTES = 1024 * 1024;

export function createFarm({ http, artifactsUrl, apiUrl }: TestingFarmSource): Farm {
  const artifactsBase = trimmed(artifactsUrl ?? DEFAULT_ARTIFACTS);
  const api = trimmed(apiUrl ?? DEFAULT_API);
  const artifacts = within(artifactsBase);
  return {
    source: { name: 'Testing Farm', metadata: { artifacts_base: artifactsBase } },
    artifactsBase,
    artifacts,
    artifact: (url, signal) => http.stream({ url, within: artifacts, signal }),
    async request(id, signal) {
      const url = `${api}/requests/${id}`;
      const headers = { accept: 'application/json' };
      const answer = await http.request({
        ...{ url, headers, signal },
        ...{ within: within(api), maxBytes: MAX_RECORD_BYTES },
      });
      return answer.json();
    },
  };
}

const trimmed = (url: string): string => url.replace(/\/+$/, '');

/**
 * Below the address and nowhere else, on any hop. The addresses are people's configuration and may lie in a private
 * network, so that a name may resolve to one; loopback is for those that name it.
 */
function within(base: string): Destinations {
  const literal = literalOf(new URL(base));
  const own = literal === undefined ? undefined : reachOf(literal);
  const reach: Reach = own === 'Loopback' ? 'Loopback' : 'Private';
  return { below: [base], reach };
}
