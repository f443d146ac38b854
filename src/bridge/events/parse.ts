import { z } from 'zod';
import { type MergeRequestEvent, mergeRequestShape } from './merge-request.ts';
import { type NoteEvent, noteShape } from './note.ts';
import { type PipelineEvent, pipelineShape } from './pipeline.ts';

/** A kind of event that nothing here handles. */
export interface OtherEvent {
  readonly kind: 'Other';
  readonly what: string;
}

export type GitLabEvent = PipelineEvent | MergeRequestEvent | NoteEvent;

export type ParsedEvent =
  | { readonly ok: true; readonly event: GitLabEvent | OtherEvent }
  /** An event without what a decision needs; `message` names the fields. */
  | { readonly ok: false; readonly message: string };

/** From an envelope's attributes and payload to an event. Never throws. */
export function parseEvent(envelope: {
  readonly source: string;
  readonly eventType: string;
  readonly payload: unknown;
}): ParsedEvent {
  const what = `${envelope.source}/${envelope.eventType}`.slice(0, 128);
  const shape = SHAPES.get(what);
  if (shape === undefined) return { ok: true, event: { kind: 'Other', what } };
  const parsed = shape.safeParse(envelope.payload);
  return parsed.success
    ? { ok: true, event: parsed.data }
    : { ok: false, message: `payload of ${what}: ${z.prettifyError(parsed.error)}` };
}

const SHAPES: ReadonlyMap<string, z.ZodType<GitLabEvent>> = new Map<string, z.ZodType<GitLabEvent>>([
  ['gitlab/pipeline', pipelineShape],
  ['gitlab/merge_request', mergeRequestShape],
  ['gitlab/note', noteShape],
  // GitLab's own word for notes that only members see.
  ['gitlab/confidential_note', noteShape],
]);
