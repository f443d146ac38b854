import { S3ServiceException } from '@aws-sdk/client-s3';
import { StoreError } from './port.ts';

export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket';
}

/** 412: the object that is there is not the one that the condition asked for. */
export function isPreconditionFailure(error: unknown): boolean {
  return statusOf(error) === 412;
}

/** 409 of a conditional write that met another one. */
export function isWriteConflict(error: unknown): boolean {
  return statusOf(error) === 409;
}

export function asStoreError(what: string, location: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const status = statusOf(error);
  const name = nameOf(error);
  const message = error instanceof Error && error.message !== name ? `: ${error.message}` : '';
  // Without a status no answer came: connection, DNS, timeout, credentials that could not be had.
  const retryable =
    status === undefined || status === 408 || status === 409 || status === 429 || status >= 500;
  const shown = `${status === undefined ? '' : `${status} `}${name}${message}`.replace(/\.$/, '');
  return new StoreError(`Cannot ${what} in ${location}: ${shown}.${advice(status, name)}`, {
    retryable,
    cause: error,
  });
}

function advice(status: number | undefined, name: string): string {
  if (name === 'NoSuchBucket') return ' Create the bucket or mend its name.';
  if (status === 403 || status === 401) return ' Check the credentials and the bucket policy.';
  if (status === 301 || name === 'PermanentRedirect') return " Set the bucket's own region.";
  if (name.startsWith('Credentials')) return ' Give the operator credentials for the bucket.';
  return '';
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'Error';
}
