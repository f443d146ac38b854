import { z } from 'zod';
import { type ChartReference, ChartUnavailableError } from '../delivery/port.ts';
import type { HttpResponse } from '../http/client.ts';
import { HttpError } from '../http/errors.ts';
import { basic, type FetchedChart, type Fetching, named } from './fetching.ts';
import { parseVersion, pickVersion } from './version-range.ts';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const CHART_LAYER = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';
const CHART_CONFIG = 'application/vnd.cncf.helm.config.v1+json';
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Of 1000 tags each. */
const MAX_TAG_PAGES = 20;

const descriptor = z.object({
  mediaType: z.string(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  size: z.int().min(0),
});
const manifest = z.object({
  config: z.object({ mediaType: z.string() }).optional(),
  layers: z.array(descriptor),
});
const index = z.object({ manifests: z.array(descriptor).min(1) });
const tagList = z.object({ tags: z.array(z.string()).nullish() });
const token = z.object({ token: z.string().optional(), access_token: z.string().optional() });

/** A chart of an OCI registry. Throws `HttpError` and `ChartUnavailableError`. */
export async function fromRegistry(reference: ChartReference, fetching: Fetching): Promise<FetchedChart> {
  const registry = new Registry(reference, fetching);
  const version = await versionOf(reference, registry);
  const layer = await chartLayer(reference, registry, tagOf(version));
  if (layer.size > fetching.maxBytes)
    throw refused(reference, `it has ${layer.size} bytes, more than the ${fetching.maxBytes} that are read`);
  const blob = await registry.get(`blobs/${layer.digest}`, '*/*', fetching.maxBytes);
  return { version, bytes: blob.bytes, sha256: layer.digest.slice('sha256:'.length) };
}

/** Tags know no `+`. */
const tagOf = (version: string): string => version.replaceAll('+', '_');

async function versionOf(reference: ChartReference, registry: Registry): Promise<string> {
  const { version } = reference;
  // A whole version is asked for as it is: not every registry lists its tags.
  if (/^v?\d+\.\d+\.\d+/.test(version) && parseVersion(version) !== undefined) return version;
  const tags = await registry.tags();
  const picked = pickVersion(
    version,
    tags.map((tag) => tag.replaceAll('_', '+')),
  );
  if (picked === undefined)
    throw refused(reference, `its registry has ${tags.length} tags, and none that fits`);
  return picked;
}

async function chartLayer(
  reference: ChartReference,
  registry: Registry,
  tag: string,
): Promise<z.infer<typeof descriptor>> {
  let answer = await registry.get(`manifests/${tag}`, `${MANIFEST}, ${INDEX}`, MAX_MANIFEST_BYTES);
  const list = index.safeParse(answer.json());
  if (list.success) {
    const [only, ...others] = list.data.manifests;
    if (only === undefined || others.length > 0)
      throw refused(
        reference,
        `its tag ${tag} is an index of ${list.data.manifests.length} manifests, which no chart is`,
      );
    answer = await registry.get(`manifests/${only.digest}`, MANIFEST, MAX_MANIFEST_BYTES);
  }
  const read = manifest.safeParse(answer.json());
  if (!read.success) throw refused(reference, `what its registry has under ${tag} is no manifest`);
  const layer = read.data.layers.find(({ mediaType }) => mediaType === CHART_LAYER);
  if (layer === undefined) {
    const type = read.data.config?.mediaType ?? 'unknown';
    throw refused(
      reference,
      type === CHART_CONFIG
        ? `its manifest ${tag} names no layer with a chart`
        : `what its registry has under ${tag} is no chart but ${type}`,
    );
  }
  return layer;
}

function refused(reference: ChartReference, why: string): ChartUnavailableError {
  return new ChartUnavailableError(`${named(reference)} cannot be fetched: ${why}.`);
}

/** One repository of a registry, with the authorization that it has given. */
class Registry {
  readonly #reference: ChartReference;
  readonly #fetching: Fetching;
  readonly #base: URL;
  readonly #repository: string;
  #authorization: Readonly<Record<string, string>> = {};

  constructor(reference: ChartReference, fetching: Fetching) {
    this.#reference = reference;
    this.#fetching = fetching;
    const [, host = '', path = ''] =
      /^oci:\/\/([^/]+)\/?(.*)$/i.exec(reference.repository.replace(/\/+$/, '')) ?? [];
    const repository = [...path.split('/'), reference.name].filter((part) => part !== '').join('/');
    if (!/^[a-z0-9._/-]+$/.test(repository))
      throw refused(reference, `${repository} is no name of a repository in a registry`);
    const scheme = fetching.plainHttp.includes(host) ? 'http' : 'https';
    const base = `${scheme}://${host}/v2/${repository}/`;
    if (host === '' || !URL.canParse(base)) throw refused(reference, `${reference.repository} is no address`);
    this.#base = new URL(base);
    this.#repository = repository;
  }

  async get(path: string, accept: string, maxBytes: number): Promise<HttpResponse> {
    const url = new URL(path, this.#base);
    try {
      return await this.#ask(url, { accept, ...this.#authorization }, maxBytes);
    } catch (error) {
      const challenge = error instanceof HttpError && error.status === 401 ? error.challenge : undefined;
      if (challenge === undefined || Object.keys(this.#authorization).length > 0) throw error;
      this.#authorization = await this.#authorize(challenge);
      return await this.#ask(url, { accept, ...this.#authorization }, maxBytes);
    }
  }

  async tags(): Promise<readonly string[]> {
    const all: string[] = [];
    let next: string | undefined = 'tags/list?n=1000';
    for (let page = 0; next !== undefined; page += 1) {
      if (page === MAX_TAG_PAGES)
        throw refused(
          this.#reference,
          `its registry has more than ${MAX_TAG_PAGES * 1000} tags; name one version`,
        );
      const answer: HttpResponse = await this.get(next, 'application/json', MAX_MANIFEST_BYTES);
      all.push(...(tagList.parse(answer.json()).tags ?? []));
      next = this.#nextPage(answer.headers['link']);
    }
    return all;
  }

  /** Of the same repository: whatever else a registry names is not followed. */
  #nextPage(link: string | undefined): string | undefined {
    const target = /<([^>]+)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
    if (target === undefined || !URL.canParse(target, this.#base.href)) return undefined;
    const url = new URL(target, this.#base);
    return url.origin === this.#base.origin && url.pathname.startsWith(this.#base.pathname)
      ? url.href
      : undefined;
  }

  async #authorize(challenge: string): Promise<Readonly<Record<string, string>>> {
    const login = basic(this.#fetching.login(this.#base));
    if (/^basic\b/i.test(challenge)) return login;
    const parameters = new Map(
      [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', value = '']) => [
        key.toLowerCase(),
        value,
      ]),
    );
    const realm = parameters.get('realm') ?? '';
    if (!/^bearer\b/i.test(challenge) || !URL.canParse(realm))
      throw refused(this.#reference, 'its registry asks for a login in a way that is not known');
    const url = new URL(realm);
    const service = parameters.get('service');
    if (service !== undefined) url.searchParams.set('service', service);
    url.searchParams.set('scope', parameters.get('scope') ?? `repository:${this.#repository}:pull`);
    const answer = token.safeParse((await this.#ask(url, login, MAX_MANIFEST_BYTES)).json());
    const value = answer.success ? (answer.data.token ?? answer.data.access_token) : undefined;
    if (value === undefined) throw refused(this.#reference, `${url.origin} gave no token`);
    return { authorization: `Bearer ${value}` };
  }

  async #ask(url: URL, headers: Readonly<Record<string, string>>, maxBytes: number): Promise<HttpResponse> {
    const { http, within, signal } = this.#fetching;
    return await http.request({ url, within, headers, maxBytes, ...(signal && { signal }) });
  }
}
