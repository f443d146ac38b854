import type { Answer } from '../port.ts';
import { readDocument } from '../structural/document.ts';
import { isMapping, type Mapping } from '../structural/value.ts';
import { Migration } from '../verdict.ts';

export type ReadMigration =
  | { readonly kind: 'Proposed'; readonly document: Mapping; readonly notes: string }
  | { readonly kind: 'Refused'; readonly reason: string };

/** What the model proposes, as data; its text is never written anywhere. */
export function readMigration(answer: Answer): ReadMigration {
  switch (answer.kind) {
    case 'Unreachable':
      return refused(`the model could not be reached: ${answer.message}`);
    case 'Malformed':
      return refused(`the model's answer is no JSON: ${answer.message}`);
    case 'Answered': {
      const parsed = Migration.safeParse(answer.value);
      if (!parsed.success) return refused("the model's answer has not the fields that were asked for");
      const reading = readDocument(parsed.data.document);
      if (reading.kind === 'Unreadable')
        return refused(`the document that the model proposes ${reading.reason}`);
      if (!isMapping(reading.value)) return refused('the document that the model proposes is no mapping');
      return { kind: 'Proposed', document: reading.value, notes: parsed.data.notes };
    }
  }
}

const refused = (reason: string): ReadMigration => ({ kind: 'Refused', reason });
