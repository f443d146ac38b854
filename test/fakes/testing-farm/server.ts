import type { IncomingMessage, ServerResponse } from 'node:http';
import { listen, sendJson } from '../model-http.ts';

export interface FarmFault {
  readonly path: RegExp;
  /** How many requests it meets; default 1. */
  readonly times?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends that many bytes of what it would have sent, then ends the connection. */
  readonly breakOffAfter?: number;
}

interface Artifact {
  readonly bytes: Uint8Array;
  readonly contentType: string;
}

export interface FakeTestingFarm {
  /** Base URLs, as `artifactsURL` and `apiURL` of a workflow. */
  readonly artifactsUrl: string;
  readonly apiUrl: string;
  /** Adds a request, or puts another in its place. States: new, queued, running, complete, error, canceled, cancel-requested. */
  request(id: string, record: { readonly state: string; readonly [field: string]: unknown }): void;
  /** Adds a file of a request. `path` as behind the request's address: `results.xml`. Returns its URL. */
  artifact(id: string, path: string, content: string | Uint8Array, contentType?: string): string;
  /** Sends readers of a path on the artifacts' host elsewhere. */
  redirect(path: string, to: string): void;
  readonly faults: FarmFault[];
  /** `GET /path`, in the order of their arrival. */
  readonly requests: string[];
  /** What a well-behaved client never does; empty after one. */
  readonly violations: string[];
  stop(): Promise<void>;
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ARTIFACTS = '/testing-farm/';
const REQUESTS = '/v0.1/requests/';

/**
 * A Testing Farm on loopback: its API's records of requests, and its artifacts as the static files that they are. A
 * stand-in for tests and the demo: no test runs behind it.
 */
export async function startTestingFarm(options: { readonly port?: number } = {}): Promise<FakeTestingFarm> {
  const records = new Map<string, unknown>();
  const artifacts = new Map<string, Artifact>();
  const redirects = new Map<string, string>();
  const faults: FarmFault[] = [];
  const requests: string[] = [];
  const violations: string[] = [];

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '/';
    requests.push(`${request.method} ${path}`);
    judge(request, path, violations);
    const fault = taken(faults, path);
    if (fault?.status !== undefined) {
      response.writeHead(fault.status, fault.headers ?? {}).end('injected');
      return;
    }
    if (path.startsWith(REQUESTS)) {
      const { status, body } = recordFor(path.slice(REQUESTS.length));
      return sendJson(response, status, body);
    }
    const to = redirects.get(path);
    if (to !== undefined) return void response.writeHead(302, { location: to }).end();
    const found = artifacts.get(decodeURIComponent(path));
    if (found === undefined)
      return void response.writeHead(404, { 'content-type': 'text/html' }).end('<html>');
    response.writeHead(200, {
      'content-type': found.contentType,
      'content-length': String(found.bytes.length),
    });
    if (fault?.breakOffAfter === undefined) return void response.end(found.bytes);
    response.write(found.bytes.subarray(0, fault.breakOffAfter), () => response.destroy());
  }

  function recordFor(id: string): { readonly status: number; readonly body: unknown } {
    if (!ID.test(id)) {
      violations.push(`${id} is no id of a request`);
      return { status: 422, body: { code: 422, message: 'value is not a valid uuid' } };
    }
    const record = records.get(id);
    if (record === undefined) return { status: 404, body: { code: 404, message: 'Test request not found' } };
    return { status: 200, body: record };
  }

  const { origin, stop } = await listen(handle, options);
  return {
    artifactsUrl: `${origin}${ARTIFACTS.slice(0, -1)}`,
    apiUrl: `${origin}/v0.1`,
    request: (id, record) => void records.set(id, recordOf(`${origin}${ARTIFACTS}${id}`, id, record)),
    artifact(id, path, content, contentType = path.endsWith('.xml') ? 'application/xml' : 'text/plain') {
      const where = `${ARTIFACTS}${id}/${path}`;
      artifacts.set(where, { bytes: Buffer.from(content), contentType });
      return `${origin}${where}`;
    },
    redirect: (path, to) => void redirects.set(path, to),
    faults,
    requests,
    violations,
    stop,
  };
}

/** Reads without credentials, with a path that needs no second thought. */
function judge(request: IncomingMessage, path: string, violations: string[]): void {
  if (request.method !== 'GET') violations.push(`${request.method} ${path}: only reads are expected`);
  for (const header of ['authorization', 'private-token', 'cookie'])
    if (request.headers[header] !== undefined) violations.push(`${path}: ${header} was sent`);
  if (!path.startsWith(REQUESTS) && !path.startsWith(ARTIFACTS))
    violations.push(`${path} lies neither below the API nor below the artifacts`);
}

function taken(faults: FarmFault[], path: string): FarmFault | undefined {
  const at = faults.findIndex((fault) => fault.path.test(path));
  const fault = faults[at];
  if (fault === undefined) return undefined;
  const left = (fault.times ?? 1) - 1;
  faults.splice(at, 1, ...(left > 0 ? [{ ...fault, times: left }] : []));
  return fault;
}

/** A record with every field that the API gives, as it stands for a request that nothing special was asked of. */
function recordOf(artifacts: string, id: string, record: object): object {
  return {
    id,
    user_id: '00000000-0000-4000-8000-000000000001',
    test: { fmf: { url: 'https://gitlab.example.org/group/tests', ref: 'main', name: null }, sti: null },
    environments_requested: [
      {
        arch: 'x86_64',
        os: { compose: 'Fedora-43' },
        variables: { TOKEN: 'not-for-the-model' },
        artifacts: [],
      },
    ],
    notes: [{ level: 'info', message: 'dispatched' }],
    result: { summary: null, overall: null, xunit: null, xunit_url: null },
    run: { console: null, stages: null, artifacts },
    settings: null,
    queued_time: null,
    run_time: null,
    created: '2026-11-30T08:00:00.000000',
    updated: '2026-11-30T08:05:00.000000',
    ...record,
  };
}
