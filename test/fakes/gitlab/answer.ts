import type { IncomingHttpHeaders } from 'node:http';
import {
  type Call,
  type Parameters,
  type ParameterType,
  Refusal,
  type Reply,
  type Route,
  tokenOf,
} from './http.ts';
import { ciRoutes } from './routes/ci.ts';
import { commitRoutes } from './routes/commits.ts';
import { discussionRoutes } from './routes/discussions.ts';
import { mergeRequestRoutes } from './routes/merge-requests.ts';
import { repositoryRoutes } from './routes/repository.ts';
import type { FakeGitLab } from './server.ts';
import type { FakeToken } from './state.ts';

const ROUTES: readonly Route[] = [
  ...mergeRequestRoutes,
  ...discussionRoutes,
  ...ciRoutes,
  ...repositoryRoutes,
  ...commitRoutes,
];

export interface Incoming {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Routing, authentication, parameters, then the resource: the order in which GitLab refuses. */
export function answer(gitlab: FakeGitLab, request: Incoming): Reply {
  try {
    const { route, path } = routeFor(gitlab, request);
    const token = authenticate(gitlab, request);
    const query = checkQuery(gitlab, request, route);
    const body = checkBody(gitlab, request, route, query);
    const lists = Object.fromEntries(
      Object.keys(query)
        .filter((name) => name.endsWith('[]'))
        .map((name) => [name.slice(0, -2), request.url.searchParams.getAll(name)]),
    );
    const call: Call = { base: gitlab.url, state: gitlab.state, token, path, query, lists, body };
    return route.handle(call);
  } catch (error) {
    if (error instanceof Refusal) return error.reply;
    throw error;
  }
}

function routeFor(
  gitlab: FakeGitLab,
  { method, url }: Incoming,
): { route: Route; path: Record<string, string> } {
  const prefix = '/api/v4/';
  const matches = url.pathname.startsWith(prefix)
    ? ROUTES.flatMap((route) => {
        const path = match(route.path, url.pathname.slice(prefix.length));
        return path === undefined ? [] : [{ route, path }];
      })
    : [];
  if (matches.length === 0) {
    gitlab.violations.push(`${method} ${url.pathname}: no such endpoint`);
    throw new Refusal({ status: 404, json: { error: '404 Not Found' } });
  }
  const found = matches.find(({ route }) => route.method === method);
  if (found === undefined) {
    gitlab.violations.push(`${method} ${url.pathname}: no such method`);
    const allow = matches.map(({ route }) => route.method).join(', ');
    throw new Refusal({ status: 405, json: { error: '405 Not Allowed' }, headers: { allow } });
  }
  return found;
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const names = pattern.split('/');
  const parts = path.split('/');
  if (names.length !== parts.length) return undefined;
  const found: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const part = parts[index] ?? '';
    if (name.startsWith(':')) found[name.slice(1)] = decodeURIComponent(part);
    else if (name !== part) return undefined;
  }
  return found;
}

function authenticate(gitlab: FakeGitLab, { method, headers }: Incoming): FakeToken {
  const value = tokenOf(headers);
  const token = value === undefined ? undefined : gitlab.state.tokens.get(value);
  if (token === undefined) throw new Refusal({ status: 401, json: { message: '401 Unauthorized' } });
  if (token.revoked) {
    const json = {
      error: 'invalid_token',
      error_description: 'Token was revoked. You have to re-authorize from the user.',
    };
    throw new Refusal({ status: 401, json });
  }
  const enough = token.scopes.includes('api') || (reads(method) && token.scopes.includes('read_api'));
  if (!enough) {
    const json = {
      error: 'insufficient_scope',
      error_description: 'The request requires higher privileges than provided by the access token.',
      scope: reads(method) ? 'api read_api' : 'api',
    };
    throw new Refusal({ status: 403, json });
  }
  return token;
}

function checkQuery(gitlab: FakeGitLab, { method, url }: Incoming, route: Route): Record<string, string> {
  const known = { ...route.query, ...(gitlab.paging === 'keyset' ? { cursor: 'string' as const } : {}) };
  const query = Object.fromEntries(url.searchParams);
  for (const [name, value] of Object.entries(query)) {
    const type = typeOf(known, name);
    if (type === undefined) gitlab.violations.push(`${method} ${url.pathname}: unknown parameter ${name}`);
    else if (
      (type === 'integer' && !/^\d+$/.test(value)) ||
      (type === 'boolean' && !/^(true|false|1|0)$/.test(value))
    ) {
      throw invalid(name);
    }
  }
  if (Number(query['per_page'] ?? 1) > 100)
    gitlab.violations.push(`${method} ${url.pathname}: per_page over 100`);
  return query;
}

function checkBody(
  gitlab: FakeGitLab,
  { method, url, headers, body }: Incoming,
  route: Route,
  query: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const fields = parseBody(headers, body);
  for (const [name, value] of Object.entries(fields)) {
    const type = typeOf(route.body ?? {}, name);
    if (type === undefined) gitlab.violations.push(`${method} ${url.pathname}: unknown field ${name}`);
    else if (!fits(type, value)) throw invalid(name);
  }
  for (const [name, parameter] of Object.entries(route.body ?? {})) {
    if (typeof parameter === 'object' && fields[name] === undefined && query[name] === undefined) {
      throw new Refusal({ status: 400, json: { error: `${name} is missing` } });
    }
  }
  return fields;
}

function parseBody(headers: IncomingHttpHeaders, body: string): Record<string, unknown> {
  if (body === '') return {};
  const type = headers['content-type']?.split(';')[0];
  if (type === 'application/x-www-form-urlencoded') return Object.fromEntries(new URLSearchParams(body));
  if (type !== 'application/json') {
    throw new Refusal({
      status: 415,
      json: { error: `The provided content-type '${type}' is not supported.` },
    });
  }
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return { ...parsed };
  } catch {
    // Answered below.
  }
  throw new Refusal({ status: 400, json: { error: 'Problem while parsing request body' } });
}

function fits(type: ParameterType, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  return type === 'list' ? Array.isArray(value) : typeof value === type;
}

function typeOf(parameters: Parameters, name: string) {
  const parameter = parameters[name];
  return typeof parameter === 'object' ? parameter.type : parameter;
}

const reads = (method: string) => method === 'GET' || method === 'HEAD';
const invalid = (name: string) => new Refusal({ status: 400, json: { error: `${name} is invalid` } });
