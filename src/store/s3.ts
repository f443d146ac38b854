import { randomUUID } from 'node:crypto';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { asChunks, createMeter, partsOf } from './bytes.ts';
import { checkKey } from './keys.ts';
import { type ObjectStore, type PutOptions, type PutResult, type StoredObject, StoreError } from './port.ts';
import { asStoreError, isMissing, isPreconditionFailure, isWriteConflict } from './s3-errors.ts';
import { uploadParts } from './s3-multipart.ts';

export interface S3Options {
  readonly bucket: string;
  /** Default: the SDK's own look-up (environment, profile). */
  readonly region?: string;
  /** For stores other than Amazon's, e.g. `http://minio:9000`. */
  readonly endpoint?: string;
  /** `http://host/bucket/key` instead of `http://bucket.host/key`: what most stores with an endpoint want. */
  readonly pathStyle?: boolean;
  /** Default: the SDK's own look-up (environment, web identity, instance). */
  readonly credentials?: S3ClientConfig['credentials'];
  /** Sends the SDK's requests, within these deadlines; left out: directly. */
  readonly requests?: (deadlines: typeof DEADLINES) => NonNullable<S3ClientConfig['requestHandler']>;
  /** Size of a part of a streamed object; at least 5 MiB on Amazon. */
  readonly partBytes?: number;
  /** Makes the mark by which a writer knows its own object again. */
  readonly writeId?: () => string;
}

/**
 * 8 MiB: with at most 10,000 parts an object may have 78 GiB, more than any sandbox holds; two parts at once in
 * memory (one being filled, one being sent).
 */
export const PART_BYTES = 8 * 1024 * 1024;

/** An object store together with its connections. */
export interface S3Store extends ObjectStore {
  close(): void;
}

/** Objects in an S3 bucket. Needs GetObject, PutObject, DeleteObject, AbortMultipartUpload and ListBucket. */
export function createS3Store(options: S3Options): S3Store {
  const { bucket, partBytes = PART_BYTES, writeId = randomUUID } = options;
  const client = new S3Client(clientConfig(options));
  const location = `s3://${bucket}/`;

  async function put(
    key: string,
    body: Uint8Array | AsyncIterable<Uint8Array>,
    put: PutOptions = {},
  ): Promise<PutResult> {
    checkKey(key);
    const mark = writeId();
    const meter = createMeter();
    const object = {
      Bucket: bucket,
      Key: key,
      Metadata: { [MARK]: mark },
      ...(put.contentType !== undefined && { ContentType: put.contentType }),
    };
    const condition = {
      ...(put.ifNoneMatch && { IfNoneMatch: '*' }),
      ...(put.ifMatch !== undefined && { IfMatch: put.ifMatch }),
    };
    const abort = put.signal === undefined ? {} : { abortSignal: put.signal };
    const parts = partsOf(meter.pass(asChunks(body)), partBytes);
    try {
      const first = await parts.next();
      const second = first.done ? first : await parts.next();
      const etag = await retryOnConflict(async () => {
        if (second.done) {
          const content = first.done ? new Uint8Array() : first.value;
          return (await client.send(new PutObjectCommand({ ...object, ...condition, Body: content }), abort))
            .ETag;
        }
        return uploadParts({
          client,
          object,
          condition,
          abort,
          parts: rejoined(first.value, second.value, parts),
        });
      }, second.done === true);
      return { kind: 'Stored', etag: etag ?? '', sha256: meter.sha256(), bytes: meter.bytes };
    } catch (error) {
      put.signal?.throwIfAborted();
      if (isPreconditionFailure(error)) {
        // The SDK repeats a request whose answer was lost: what is "in the way" may be our own object.
        const own = await ownEtag(key, mark);
        if (own !== undefined)
          return { kind: 'Stored', etag: own, sha256: meter.sha256(), bytes: meter.bytes };
        return { kind: put.ifNoneMatch ? 'AlreadyExists' : 'Conflict' };
      }
      if (put.ifMatch !== undefined && isMissing(error)) return { kind: 'Conflict' };
      throw asStoreError(`write ${key}`, location, error);
    } finally {
      await parts.return(undefined);
    }
  }

  /** The etag of the stored object when this writer made it. */
  async function ownEtag(key: string, mark: string): Promise<string | undefined> {
    try {
      const head = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }));
      return head.Metadata?.[MARK] === mark ? (head.ETag ?? '') : undefined;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw asStoreError(`look at ${key}`, location, error);
    }
  }

  async function get(key: string, signal?: AbortSignal): Promise<StoredObject | undefined> {
    checkKey(key);
    try {
      const abort = signal === undefined ? {} : { abortSignal: signal };
      const object = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }), abort);
      const body = chunksOf(object.Body, `${location}${key}`, object.ContentLength, signal);
      return { body, etag: object.ETag ?? '', bytes: object.ContentLength ?? 0 };
    } catch (error) {
      signal?.throwIfAborted();
      if (isMissing(error)) return undefined;
      throw asStoreError(`read ${key}`, location, error);
    }
  }

  /** S3 does not say whether there was something to delete, so it is asked before. */
  async function remove(key: string): Promise<boolean> {
    checkKey(key);
    const target = { Bucket: bucket, Key: key };
    try {
      await client.send(new HeadObjectCommand(target));
      await client.send(new DeleteObjectCommand(target));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw asStoreError(`delete ${key}`, location, error);
    }
  }

  async function* list(prefix: string): AsyncGenerator<string> {
    let token: string | undefined;
    do {
      const query = {
        Bucket: bucket,
        Prefix: prefix,
        ...(token !== undefined && { ContinuationToken: token }),
      };
      const page = await client.send(new ListObjectsV2Command(query)).catch((error: unknown) => {
        throw asStoreError(`list ${prefix}`, location, error);
      });
      for (const { Key } of page.Contents ?? []) if (Key !== undefined) yield Key;
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  return { location, put, get, delete: remove, list, close: () => client.destroy() };
}

const MARK = 'hummingbird-write-id';

/** The SDK's own handler waits without end by default. */
const DEADLINES = { connectionTimeout: 5_000, requestTimeout: 60_000 };

function clientConfig({ region, endpoint, pathStyle, credentials, requests }: S3Options): S3ClientConfig {
  return {
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(pathStyle !== undefined && { forcePathStyle: pathStyle }),
    ...(credentials !== undefined && { credentials }),
    maxAttempts: 4,
    requestHandler: requests?.(DEADLINES) ?? DEADLINES,
    // Trailing checksums are unknown to many stores that are not Amazon's.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  };
}

/** 409: two conditional writes met, neither was decided. A stream that is partly read cannot be sent again. */
async function retryOnConflict<T>(write: () => Promise<T>, repeatable: boolean): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      if (!isWriteConflict(error) || !repeatable || attempt >= 4) throw error;
    }
  }
}

async function* rejoined(
  first: Uint8Array,
  second: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield first;
  yield second;
  yield* rest;
}

/** A body that ends early without an error would pass for the whole object. */
async function* chunksOf(
  body: unknown,
  name: string,
  expected: number | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  if (!isByteStream(body)) throw new StoreError(`The body of ${name} is no stream.`, { retryable: false });
  let bytes = 0;
  try {
    for await (const chunk of body) {
      signal?.throwIfAborted();
      bytes += chunk.length;
      yield chunk;
    }
  } catch (cause) {
    signal?.throwIfAborted();
    throw new StoreError(`Reading ${name} broke off after ${bytes} bytes: read it again.`, {
      retryable: true,
      cause,
    });
  }
  if (expected !== undefined && bytes !== expected) {
    throw new StoreError(`${name} ended after ${bytes} of ${expected} bytes: read it again.`, {
      retryable: true,
    });
  }
}

function isByteStream(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}
