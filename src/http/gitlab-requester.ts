import type { Users } from '@gitbeaker/rest';
import type { HttpClient, HttpRequest } from './client.ts';
import { withQuery } from './gitlab-pages.ts';

type Method = NonNullable<HttpRequest['method']>;
/** Gitbeaker's own names for these live in a package that we do not depend on. */
type RequesterFn = NonNullable<ConstructorParameters<typeof Users>[0]['requesterFn']>;
type ResourceOptions = Parameters<RequesterFn>[0];
type RequesterType = ReturnType<RequesterFn>;
type DefaultRequestOptions = NonNullable<Parameters<RequesterType['get']>[1]>;
type FormattedResponse = Awaited<ReturnType<RequesterType['get']>>;

/**
 * Gitbeaker's transport on our client. Its own one repeats writes too, does not know Retry-After, and reads
 * answers of any size.
 */
export function requesterOn(
  http: HttpClient,
  signal?: AbortSignal,
): (resource: ResourceOptions) => RequesterType {
  return (resource) => {
    const call = (method: Method) => (endpoint: string, options?: DefaultRequestOptions) =>
      send(http, resource, method, endpoint, options, signal);
    // Gitbeaker lets its caller name the type of the body, which no transport can know. Every reader of ours
    // parses what it gets with a schema.
    return {
      get: call('GET'),
      post: call('POST'),
      put: call('PUT'),
      patch: call('PATCH'),
      delete: call('DELETE'),
    } as RequesterType;
  };
}

async function send(
  http: HttpClient,
  resource: ResourceOptions,
  method: Method,
  endpoint: string,
  options: DefaultRequestOptions = {},
  signal?: AbortSignal,
): Promise<FormattedResponse> {
  const base = resource.url.endsWith('/') ? resource.url : `${resource.url}/`;
  const headers: Record<string, string> = { accept: 'application/json', ...resource.headers };
  for (const [name, value] of Object.entries(resource.authHeaders)) headers[name] = await value();
  const { body, searchParams } = options;
  if (body instanceof FormData) throw new TypeError('Forms are not sent: pass plain fields');
  if (body !== undefined) headers['content-type'] = 'application/json';
  const answer = await http.request({
    method,
    url: withQuery(base + endpoint, snakeKeys(searchParams)),
    headers,
    // Every PUT of GitLab's sets fields to given values.
    idempotent: method === 'PUT',
    ...(body === undefined ? {} : { body: JSON.stringify(snakeKeys(body)) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const parsed = answer.bytes.length === 0 ? null : answer.json();
  return { status: answer.status, headers: { ...answer.headers }, body: parsed as FormattedResponse['body'] };
}

/** Gitbeaker speaks camelCase, GitLab snake_case. Only first-level keys are options; values are data. */
function snakeKeys(fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
