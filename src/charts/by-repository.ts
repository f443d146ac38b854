import type { ChartSource } from '../delivery/port.ts';
import { type ChartSourceOptions, createChartSource } from './source.ts';

export interface ByRepositoryOptions extends Pick<ChartSourceOptions, 'http' | 'login' | 'maxBytes'> {
  /** Addresses of repositories that people configured: they may be private and speak HTTP. */
  readonly configured: readonly string[];
}

/**
 * What lies below a configured address is fetched wherever that leads inside; everything else comes from files of merge
 * requests, and is fetched by https from public addresses only.
 */
export function chartsByRepository({ configured, ...options }: ByRepositoryOptions): ChartSource {
  const strangers = createChartSource(options);
  const ours = configured.map((written) => {
    const address = withoutSlash(written);
    return { address, source: configuredSource(address, options) };
  });
  return {
    fetch(reference, signal) {
      const own = ours.find(({ address }) => liesBelow(reference.repository, address));
      return (own?.source ?? strangers).fetch(reference, signal);
    },
  };
}

function configuredSource(address: string, options: Omit<ByRepositoryOptions, 'configured'>): ChartSource {
  const oci = address.startsWith('oci://');
  const host = new URL(address.replace(/^oci:/, 'http:')).host;
  // A registry answers at its root, and sends to blobs elsewhere on the same host.
  const below = oci ? [`http://${host}/`, `https://${host}/`] : [address];
  return createChartSource({
    ...options,
    within: { below, reach: 'Loopback' },
    ...(oci && { plainHttp: [host] }),
  });
}

const liesBelow = (repository: string, address: string): boolean =>
  `${repository}/`.startsWith(`${address}/`);

const withoutSlash = (address: string): string => address.replace(/\/+$/, '');
