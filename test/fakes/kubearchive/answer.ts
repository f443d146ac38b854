import type { IncomingHttpHeaders } from 'node:http';
import type { FakeKubeArchive } from './server.ts';
import type { Row } from './state.ts';

export type Answer =
  | { readonly kind: 'Error'; readonly status: number; readonly message: string }
  | { readonly kind: 'Object'; readonly json: string }
  | { readonly kind: 'List'; readonly rows: readonly Row[]; readonly token: string }
  | { readonly kind: 'Log'; readonly bytes: Uint8Array };

/** KubeArchive's own: without a limit 100 rows, beyond 1,000 a refusal. */
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

const PATH =
  /^\/(api\/v1|apis\/[a-z0-9.-]+\/v[a-z0-9]+)\/namespaces\/([^/]+)\/([a-z]+)(?:\/([^/]+)(\/log)?)?$/;

/** Authentication, authorization, parameters, then the resource: the order in which KubeArchive refuses. */
export function answer(archive: FakeKubeArchive, url: URL, headers: IncomingHttpHeaders): Answer {
  const matched = PATH.exec(url.pathname);
  if (matched === null) {
    archive.violations.push(`${url.pathname}: no such endpoint`);
    return refused(404, '404 page not found');
  }
  const [, group = '', namespace = '', plural = '', name, log] = matched;
  return (
    unauthorized(archive, headers, namespace) ??
    (log === undefined
      ? name === undefined
        ? list(archive, url, `${group}/${plural}`, namespace)
        : single(archive, `${group}/${plural}`, namespace, name)
      : logOf(archive, url, namespace, name ?? ''))
  );
}

function unauthorized(
  archive: FakeKubeArchive,
  { authorization = '' }: IncomingHttpHeaders,
  namespace: string,
): Answer | undefined {
  if (authorization === '') return refused(400, 'empty authorization bearer token given');
  const [, token] = authorization.split(' ');
  if (token === undefined) return refused(400, 'incorrectly formatted authorization header');
  const namespaces = archive.state.tokens.get(token);
  if (namespaces === undefined) return refused(401, 'authentication failed');
  return namespaces.includes(namespace) ? undefined : refused(403, 'unauthorized');
}

function list(archive: FakeKubeArchive, url: URL, resource: string, namespace: string): Answer {
  const known = ['limit', 'continue', 'labelSelector'];
  for (const name of url.searchParams.keys())
    if (!known.includes(name)) archive.violations.push(`${url.pathname}: unknown parameter ${name}`);
  const limitText = url.searchParams.get('limit') ?? String(DEFAULT_LIMIT);
  if (!/^\d+$/.test(limitText)) return refused(400, `limit '${limitText}' could not be converted to integer`);
  const limit = Number(limitText);
  if (limit > MAX_LIMIT)
    return refused(400, `limit '${limitText}' exceeds the maximum allowed '${MAX_LIMIT}'`);
  const selector = parseSelector(url.searchParams.get('labelSelector') ?? '');
  if (selector === undefined) return refused(400, 'unable to parse requirement');
  const after = parseToken(url.searchParams.get('continue') ?? '');
  if (after === undefined) return refused(400, 'could not decode the continuation token');
  const selected = archive.state
    .sorted(resource, namespace)
    .filter(({ object }) => selector.every(([label, value]) => object.metadata.labels?.[label] === value))
    .filter(
      ({ id, date }) => after === 'Start' || date < after.date || (date === after.date && id < after.id),
    );
  const rows = selected.slice(0, limit);
  const last = rows.at(-1);
  const more = archive.endsWithToken ? rows.length > 0 : selected.length > rows.length;
  const token = more && last ? Buffer.from(`${last.id} ${last.date}`).toString('base64') : '';
  return { kind: 'List', rows, token };
}

/** Only what the client needs: `name=value`, more of them after commas. */
function parseSelector(text: string): readonly (readonly [string, string])[] | undefined {
  if (text === '') return [];
  const pairs = text.split(',').map((part) => /^([\w./-]+)==?([\w.-]*)$/.exec(part));
  const found = pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? ''] as const);
  return pairs.includes(null) ? undefined : found;
}

function parseToken(text: string): 'Start' | { readonly id: number; readonly date: string } | undefined {
  if (text === '') return 'Start';
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const [id, date] = Buffer.from(text, 'base64').toString().split(' ');
  if (id === undefined || date === undefined || !/^\d+$/.test(id) || Number.isNaN(Date.parse(date)))
    return undefined;
  return { id: Number(id), date };
}

function single(archive: FakeKubeArchive, resource: string, namespace: string, name: string): Answer {
  const row = archive.state.sorted(resource, namespace).find(({ object }) => object.metadata.name === name);
  return row === undefined ? refused(404, 'resource not found') : { kind: 'Object', json: row.json };
}

function logOf(archive: FakeKubeArchive, url: URL, namespace: string, pod: string): Answer {
  for (const parameter of url.searchParams.keys())
    if (parameter !== 'container') archive.violations.push(`${url.pathname}: unknown parameter ${parameter}`);
  const container = url.searchParams.get('container');
  const prefix = `${namespace}/${pod}/`;
  const key =
    container === null
      ? [...archive.state.logs.keys()].find((one) => one.startsWith(prefix))
      : `${prefix}${container}`;
  const bytes = key === undefined ? undefined : archive.state.logs.get(key);
  return bytes === undefined ? refused(404, 'no log URL found') : { kind: 'Log', bytes };
}

const refused = (status: number, message: string): Answer => ({ kind: 'Error', status, message });
