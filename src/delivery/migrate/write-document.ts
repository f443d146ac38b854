import { parseAllDocuments } from 'yaml';
import { type Anchor, applyPlan, type PlanOutcome } from '../structural/apply-plan.ts';
import { readDocuments, writeDocument } from '../structural/document.ts';
import { planOf, withoutEmptied } from '../structural/plan.ts';
import { equals, type Mapping, valueAt } from '../structural/value.ts';

/**
 * Writes `proposed` over `original` at its place in a file, in as few lines as it takes, and reads it again. Refused
 * when the place does not read as the one or the other.
 */
export function writeOver(text: string, anchor: Anchor, original: Mapping, proposed: Mapping): PlanOutcome {
  if (!equals(read(text, anchor), original))
    return refused('does not hold all of what was migrated; its values come from several places');
  const written = applyPlan(text, anchor, planOf(original, proposed));
  if (written.kind === 'Refused') return written;
  const target = withoutEmptied(original, proposed);
  const now = read(written.text, anchor);
  const isGone = Object.keys(target).length === 0 && (now === undefined || now === null);
  return isGone || equals(now, target) ? written : refused('did not read as proposed after it was written');
}

/** As `writeOver`; a document whose style has no lines to change is written anew, in block style. */
export function writeDocumentOver(
  text: string,
  document: number,
  original: Mapping,
  proposed: Mapping,
): PlanOutcome {
  const anchor = { document, prefix: [] };
  const inPlace = writeOver(text, anchor, original, proposed);
  if (inPlace.kind === 'Applied') return inPlace;
  const contents = parseAllDocuments(text, { prettyErrors: false, logLevel: 'silent' })[document]?.contents;
  const [start, end] = contents?.range ?? [];
  if (start === undefined || end === undefined) return inPlace;
  const lines = writeDocument(proposed).trimEnd();
  const body = text.includes('\r\n') ? lines.replaceAll('\n', '\r\n') : lines;
  const anew = text.slice(0, start) + body + text.slice(start).slice(text.slice(start, end).trimEnd().length);
  return equals(read(anew, anchor), proposed) ? { kind: 'Applied', text: anew } : inPlace;
}

function read(text: string, { document, prefix }: Anchor) {
  const reading = readDocuments(text)[document];
  return reading?.kind === 'Read' ? valueAt(reading.value, prefix) : undefined;
}

const refused = (reason: string): PlanOutcome => ({ kind: 'Refused', reason });
