/**
 * How long the provider wants to be left alone, in milliseconds: `retryDelay` of a `google.rpc.RetryInfo` among
 * the error's details, else the figure in Google's message. Reads text rather than JSON, since the excerpt of an
 * error may be cut behind it.
 */
export function askedDelayMs(body: string): number | undefined {
  const seconds = RETRY_DELAY.exec(body)?.[1] ?? PLEASE_RETRY.exec(body)?.[1];
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000);
}

/** A protobuf Duration in JSON: seconds with up to nine decimals and an `s`. */
const RETRY_DELAY = /"retryDelay"\s*:\s*"(\d+(?:\.\d{1,9})?)s"/;
const PLEASE_RETRY = /retry in (\d+(?:\.\d+)?)s\b/i;
