import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Marker, ParsedMarker } from './port.ts';

/** A secret that signs markers. `id` stands in the marker in the clear and names the secret to check with. */
export interface MarkerKey {
  readonly id: string;
  readonly secret: string;
}

export interface MarkerOptions {
  /** The first signs, all verify: put a new key in front and drop the old one when its notes are of no more use. */
  readonly keys: readonly [MarkerKey, ...MarkerKey[]];
  /** Word that opens the comment. */
  readonly prefix?: string;
  /** Whether markers from before they were signed count: while notes of an operator of that time are at work. */
  readonly acceptUnsigned?: boolean;
}

export const DEFAULT_MARKER_PREFIX = 'hummingbird-session';

const Uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const Commit = /^([0-9a-f]{40}|[0-9a-f]{64})$/i;
const short = z.string().min(1).max(256);
const Payload = z.object({
  id: short,
  wf: short.optional(),
  sha: short.optional(),
  run: short.optional(),
  kid: short.optional(),
  sig: z.string().max(128).optional(),
});

/** The HTML comment that ends a note. Readers of the merge request do not see it. */
export function renderMarker(marker: Marker, options: MarkerOptions): string {
  const [key] = options.keys;
  const signed = { ...fields(marker), kid: key.id };
  const json = JSON.stringify({ ...signed, sig: sign(signed, key) });
  return `<!-- ${options.prefix ?? DEFAULT_MARKER_PREFIX}: ${escapeDashes(json)} -->`;
}

/**
 * The marker that stands last in a note, undefined when none does. Ask it about notes of our bots only: what
 * anybody else writes proves nothing, and a text that merely quotes a marker has it elsewhere than at its end.
 */
export function parseMarker(body: string, options: MarkerOptions): ParsedMarker | undefined {
  const text = lastComment(body, options.prefix ?? DEFAULT_MARKER_PREFIX);
  if (text === undefined) return undefined;
  if (Uuid.test(text)) return unsigned({ id: text }, options);
  const payload = Payload.safeParse(parseJson(text));
  if (!payload.success) return undefined;
  const { sig, kid, ...rest } = payload.data;
  if (sig === undefined) return unsigned(rest, options);
  const marker: Marker = fields({ ...rest, wf: rest.wf ?? '' });
  const key = options.keys.find(({ id }) => id === kid);
  if (key === undefined || kid === undefined) return { kind: 'Forged' };
  return same(sig, sign({ ...marker, kid }, key)) ? { kind: 'Signed', marker } : { kind: 'Forged' };
}

/** In today's fields. Sessions were named by uuids then; a run was not named. */
function unsigned(
  { id, wf = '', sha = '' }: Pick<z.infer<typeof Payload>, 'id' | 'wf' | 'sha'>,
  { acceptUnsigned = false }: MarkerOptions,
): ParsedMarker {
  if (!acceptUnsigned || !Uuid.test(id)) return { kind: 'Unsigned' };
  const commit = Commit.test(sha) ? { sha: sha.toLowerCase() } : {};
  return { kind: 'Accepted', marker: { id: id.toLowerCase(), wf, ...commit } };
}

/** The marker of a note of ours, if it counts. */
export const markerThatCounts = (parsed: ParsedMarker | undefined): Marker | undefined =>
  parsed?.kind === 'Signed' || parsed?.kind === 'Accepted' ? parsed.marker : undefined;

/** `body` without the marker at its end. */
export function withoutMarker(body: string, prefix = DEFAULT_MARKER_PREFIX): string {
  const start = lastCommentStart(body, prefix);
  return start === undefined ? body : body.slice(0, start).trimEnd();
}

function lastCommentStart(body: string, prefix: string): number | undefined {
  if (!body.trimEnd().endsWith('-->')) return undefined;
  const start = body.lastIndexOf(`<!-- ${prefix}`);
  const end = body.indexOf('-->', start);
  // Another comment behind it would be the one that stands last.
  return start === -1 || body.slice(end + 3).trim() !== '' ? undefined : start;
}

function lastComment(body: string, prefix: string): string | undefined {
  const start = lastCommentStart(body, prefix);
  if (start === undefined) return undefined;
  const inside = body.slice(start + `<!-- ${prefix}`.length, body.indexOf('-->', start));
  // Old notes have a blank where new ones have a colon.
  return /^[:\s]/.test(inside) ? inside.replace(/^:/, '').trim() : undefined;
}

function fields(marker: {
  id: string;
  wf: string;
  sha?: string | undefined;
  run?: string | undefined;
}): Marker {
  const { id, wf, sha, run } = marker;
  return { id, wf, ...(sha === undefined ? {} : { sha }), ...(run === undefined ? {} : { run }) };
}

/** Over the fields in the order of their names, so that the order in the note does not matter. */
function sign(
  content: Readonly<Record<string, unknown>> | (Marker & { kid: string }),
  key: MarkerKey,
): string {
  const canonical = JSON.stringify(
    Object.fromEntries(Object.entries(content).sort(([a], [b]) => (a < b ? -1 : 1))),
  );
  return createHmac('sha256', key.secret).update(canonical).digest('hex');
}

/** Two dashes would end the comment; inside a JSON string one of them can be written as an escape. */
export const escapeDashes = (json: string) => json.replaceAll('--', '-\\u002d');

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
