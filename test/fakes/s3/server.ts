import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface StoredEntry {
  readonly body: Buffer;
  readonly etag: string;
  readonly headers: Record<string, string>;
}

interface Upload {
  readonly key: string;
  readonly parts: Map<number, { readonly body: Buffer; readonly etag: string }>;
  readonly headers: Record<string, string>;
}

export type S3Fault =
  | { readonly kind: 'Status'; readonly status: number; readonly code: string }
  /** The write is done, its answer is lost. */
  | { readonly kind: 'DropAfter' }
  | { readonly kind: 'CutBody' };

export interface S3Server {
  readonly endpoint: string;
  readonly objects: ReadonlyMap<string, StoredEntry>;
  /** Multipart uploads that were neither completed nor aborted. */
  readonly openUploads: ReadonlyMap<string, unknown>;
  readonly log: readonly string[];
  /** The first fault whose `on` matches `METHOD key?query` is used up. */
  readonly faults: { readonly on: RegExp; readonly fault: S3Fault }[];
  stop(): Promise<void>;
}

const MIN_PART = 5 * 1024 * 1024;

/**
 * One bucket, path style, with the verbs that the store uses: strict where it matters to it, that is in
 * conditional writes, part sizes and part lists. Signatures are not checked.
 */
export async function startS3(bucket: string, { minPartBytes = MIN_PART } = {}): Promise<S3Server> {
  const objects = new Map<string, StoredEntry>();
  const uploads = new Map<string, Upload>();
  const log: string[] = [];
  const faults: { on: RegExp; fault: S3Fault }[] = [];

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', 'http://s3');
    const [, first, ...rest] = url.pathname.split('/');
    const key = decodeURIComponent(rest.join('/'));
    const line = `${request.method} ${key}${url.search}`;
    log.push(line);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const position = faults.findIndex(({ on }) => on.test(line));
    const fault = position < 0 ? undefined : faults.splice(position, 1)[0]?.fault;

    if (fault?.kind === 'Status') return fail(response, fault.status, fault.code);
    if (first !== bucket) return fail(response, 404, 'NoSuchBucket');
    if (!request.headers.authorization?.startsWith('AWS4-HMAC-SHA256 '))
      return fail(response, 403, 'AccessDenied');
    if (fault?.kind === 'DropAfter') {
      response.end = () => {
        response.destroy();
        return response;
      };
    }
    if (key === '') return list(url, response);
    const uploadId = url.searchParams.get('uploadId');
    switch (request.method) {
      case 'PUT':
        return uploadId === null
          ? store(key, body, request, response)
          : storePart(uploadId, Number(url.searchParams.get('partNumber')), body, response);
      case 'POST':
        if (url.searchParams.has('uploads')) return begin(key, request, response);
        return uploadId === null
          ? fail(response, 400, 'InvalidRequest')
          : complete(uploadId, body, request, response);
      case 'GET':
      case 'HEAD':
        return read(key, request.method === 'HEAD', fault?.kind === 'CutBody', response);
      case 'DELETE':
        if (uploadId !== null) uploads.delete(uploadId);
        else objects.delete(key);
        response.writeHead(204).end();
        return;
      default:
        fail(response, 405, 'MethodNotAllowed');
    }
  }

  /** Undefined when the write may go on. */
  function refusal(key: string, headers: IncomingMessage['headers']): readonly [number, string] | undefined {
    const current = objects.get(key);
    const noneMatch = headers['if-none-match'];
    if (noneMatch !== undefined && noneMatch !== '*') return [501, 'NotImplemented'];
    if (noneMatch === '*' && current) return [412, 'PreconditionFailed'];
    if (headers['if-match'] !== undefined) {
      if (!current) return [404, 'NoSuchKey'];
      if (headers['if-match'] !== current.etag) return [412, 'PreconditionFailed'];
    }
    return undefined;
  }

  function store(key: string, body: Buffer, request: IncomingMessage, response: ServerResponse) {
    const refused = refusal(key, request.headers);
    if (refused) return fail(response, ...refused);
    const etag = etagOf(body);
    objects.set(key, { body, etag, headers: keptHeaders(request) });
    response.writeHead(200, { etag }).end();
  }

  function begin(key: string, request: IncomingMessage, response: ServerResponse) {
    const id = randomUUID();
    uploads.set(id, { key, parts: new Map(), headers: keptHeaders(request) });
    sendXml(
      response,
      `<InitiateMultipartUploadResult><Bucket>${bucket}</Bucket><Key>${escapeXml(key)}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  function storePart(id: string, number: number, body: Buffer, response: ServerResponse) {
    const upload = uploads.get(id);
    if (!upload) return fail(response, 404, 'NoSuchUpload');
    if (!(number >= 1 && number <= 10_000)) return fail(response, 400, 'InvalidArgument');
    const etag = etagOf(body);
    upload.parts.set(number, { body, etag });
    response.writeHead(200, { etag }).end();
  }

  function complete(id: string, body: Buffer, request: IncomingMessage, response: ServerResponse) {
    const upload = uploads.get(id);
    if (!upload) return fail(response, 404, 'NoSuchUpload');
    const named = [...body.toString().matchAll(/<Part>([\s\S]*?)<\/Part>/g)].map(([, part = '']) => ({
      number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
      etag: (/<ETag>([^<]*)</.exec(part)?.[1] ?? '').replaceAll('&quot;', '"'),
    }));
    const bodies: Buffer[] = [];
    for (const [index, { number, etag }] of named.entries()) {
      const part = upload.parts.get(number);
      if (!part || part.etag !== etag) return fail(response, 400, 'InvalidPart');
      if (index > 0 && number <= (named[index - 1]?.number ?? 0))
        return fail(response, 400, 'InvalidPartOrder');
      if (index < named.length - 1 && part.body.length < minPartBytes)
        return fail(response, 400, 'EntityTooSmall');
      bodies.push(part.body);
    }
    if (bodies.length === 0) return fail(response, 400, 'MalformedXML');
    const refused = refusal(upload.key, request.headers);
    if (refused) return fail(response, ...refused);
    const whole = Buffer.concat(bodies);
    const etag = `"${createHash('md5').update(whole).digest('hex')}-${bodies.length}"`;
    objects.set(upload.key, { body: whole, etag, headers: upload.headers });
    uploads.delete(id);
    sendXml(
      response,
      `<CompleteMultipartUploadResult><Key>${escapeXml(upload.key)}</Key><ETag>${etag.replaceAll('"', '&quot;')}</ETag></CompleteMultipartUploadResult>`,
    );
  }

  function read(key: string, headOnly: boolean, cut: boolean, response: ServerResponse) {
    const object = objects.get(key);
    if (!object) return fail(response, 404, 'NoSuchKey');
    const { body, etag, headers } = object;
    response.writeHead(200, { ...headers, etag, 'content-length': String(body.length) });
    if (headOnly) response.end();
    else if (cut) response.write(body.subarray(0, body.length / 2), () => response.destroy());
    else response.end(body);
  }

  /** Two keys a page, so that paging is always tried. */
  function list(url: URL, response: ServerResponse) {
    const prefix = url.searchParams.get('prefix') ?? '';
    const after = url.searchParams.get('continuation-token') ?? '';
    const keys = [...objects.keys()]
      .filter(
        (key) =>
          key.startsWith(prefix) &&
          (after === '' || Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0),
      )
      .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const page = keys.slice(0, 2);
    const more = keys.length > page.length;
    const next = more ? `<NextContinuationToken>${escapeXml(page.at(-1) ?? '')}</NextContinuationToken>` : '';
    const contents = page.map((key) => `<Contents><Key>${escapeXml(key)}</Key></Contents>`).join('');
    sendXml(
      response,
      `<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${contents}</ListBucketResult>`,
    );
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    objects,
    openUploads: uploads,
    log,
    faults,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function keptHeaders(request: IncomingMessage): Record<string, string> {
  const kept = Object.entries(request.headers).filter(
    ([name]) => name === 'content-type' || name.startsWith('x-amz-meta-'),
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

function etagOf(body: Buffer): string {
  return `"${createHash('md5').update(body).digest('hex')}"`;
}

function fail(response: ServerResponse, status: number, code: string) {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}

function sendXml(response: ServerResponse, xml: string): void {
  response.writeHead(200, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0"?>${xml}`);
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
