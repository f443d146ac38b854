import { getCACertificates } from 'node:tls';
import { type HttpClient, HttpError, type HttpStream, type TlsIdentity } from '../../http/client.ts';
import type { ToolToken } from '../../settings/tokens.ts';
import { type KonfluxAddress, parseClusterUrl } from './address.ts';
import { identityFor } from './kubeconfig.ts';

export interface KonfluxSettings {
  readonly http: HttpClient;
  /** `https://api.DOMAIN:6443/ns/NAMESPACE`. */
  readonly clusterUrl: string;
  /** Absent: only what the cluster still has. */
  readonly kubearchiveUrl?: string;
  /** The text of the kubeconfig: a secret of the tool tier as a whole. */
  readonly kubeconfig: ToolToken;
  /** Told what in the kubeconfig is a secret by itself, so that it is kept out of everything that leaves the process. */
  readonly onSecret?: (value: string) => void;
}

/** An API that answers as Kubernetes does, for one identity. */
export interface KubeApi {
  /** For messages: `the cluster`, `KubeArchive`. */
  readonly name: string;
  /** `path` as `/api/v1/…`. Throws `HttpError`. */
  stream(path: string, query: Query, signal: AbortSignal): Promise<HttpStream>;
  /** A single object, parsed; undefined when there is none. Throws `HttpError`. */
  read(path: string, signal: AbortSignal): Promise<unknown>;
}

export type Query = Readonly<Record<string, string>>;

/** One tenant's namespace, open for reading. */
export interface KonfluxAccess {
  readonly address: KonfluxAddress;
  readonly cluster: KubeApi;
  /** Absent where there is none. */
  readonly archive?: KubeApi;
}

export type KonfluxOpened =
  | { readonly kind: 'Ok'; readonly access: KonfluxAccess }
  | { readonly kind: 'Invalid'; readonly message: string };

/** Connects nothing yet: what can be wrong here is wrong in the settings, and the message says what to write. */
export function openKonflux(settings: KonfluxSettings): KonfluxOpened {
  const { http, clusterUrl, kubearchiveUrl, kubeconfig } = settings;
  const address = parseClusterUrl(clusterUrl);
  if (address === undefined)
    return invalid(`the cluster's URL must be as https://api.example.org:6443/ns/NAMESPACE`);
  const found = identityFor(kubeconfig.reveal(), address);
  if (found.kind === 'Invalid') return found;
  const { token, tls, ca, secrets } = found.identity;
  for (const secret of secrets) settings.onSecret?.(secret);
  const cluster = kubeApi(http, { name: 'the cluster', baseUrl: address.server, token, tls });
  if (kubearchiveUrl === undefined) return { kind: 'Ok', access: { address, cluster } };
  if (token === undefined)
    return invalid('kubeconfig: KubeArchive takes tokens only; give the user one, or name no KubeArchive');
  const archive = kubeApi(http, {
    name: 'KubeArchive',
    baseUrl: kubearchiveUrl.replace(/\/+$/, ''),
    token,
    tls: alsoSignedBy(ca),
  });
  return { kind: 'Ok', access: { address, cluster, archive } };
}

const invalid = (message: string): KonfluxOpened => ({ kind: 'Invalid', message });

/**
 * KubeArchive stands behind the cluster's ingress: publicly signed, or by the cluster's authority. That the cluster
 * itself may go unverified says nothing of it.
 */
function alsoSignedBy(ca: string | undefined): TlsIdentity | undefined {
  return ca === undefined ? undefined : { ca: [...getCACertificates('default'), ca] };
}

/** Lists of an archive may take long to begin. */
const TIMEOUT_MS = 60_000;
/** etcd keeps objects of 1.5 MiB; escapes can multiply that. */
const MAX_OBJECT_BYTES = 8 * 1024 * 1024;

function kubeApi(
  http: HttpClient,
  {
    name,
    baseUrl,
    token,
    tls,
  }: {
    readonly name: string;
    readonly baseUrl: string;
    readonly token: ToolToken | undefined;
    readonly tls: TlsIdentity | undefined;
  },
): KubeApi {
  const common = (accept: string, signal: AbortSignal) => ({
    headers: {
      accept,
      'accept-encoding': 'gzip',
      ...(token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }),
    },
    ...(tls === undefined ? {} : { tls }),
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  return {
    name,
    stream: (path, query, signal) =>
      http.stream({ url: `${baseUrl}${path}${queryText(query)}`, ...common('*/*', signal) }),
    async read(path, signal) {
      const url = `${baseUrl}${path}`;
      try {
        const answer = await http.request({
          url,
          ...common('application/json', signal),
          maxBytes: MAX_OBJECT_BYTES,
        });
        return answer.json();
      } catch (error) {
        if (error instanceof HttpError && error.status === 404) return undefined;
        throw error;
      }
    },
  };
}

function queryText(query: Query): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? '' : `?${text}`;
}
