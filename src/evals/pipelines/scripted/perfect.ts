import type { Model } from '../../../agent/models/port.ts';
import type { PipelineCase } from '../pipeline-case.ts';
import { SCOPE } from '../world/places.ts';
import { firstReads, nextReads } from './reads.ts';
import { type Seen, scriptedModel } from './scripted-model.ts';

/**
 * Reads as the workflow says, and reports the case's facts: only those that a tool has shown, so that it gets full marks
 * only for a case whose cause can be found.
 */
export const perfectModel = (one: PipelineCase): Model =>
  scriptedModel('scripted:perfect', (seen) => {
    if (seen.turn === 1) return { kind: 'Call', calls: firstReads(SCOPE) };
    const calls = nextReads(seen, SCOPE);
    if (calls.length > 0) return { kind: 'Call', calls };
    return { kind: 'Say', text: report(one, seen) };
  });

function report({ want }: PipelineCase, { answers }: Seen): string {
  const read = answers.map(({ text }) => text.toLowerCase());
  const facts = want.mustSay.flatMap((group) =>
    group.filter((fact) => read.some((text) => text.includes(fact.toLowerCase()))).slice(0, 1),
  );
  const causes = want.kinds.map((kind, index) => `### ${index + 1}. A cause that was found (${kind})`);
  return [
    `**${want.kinds.length} root causes**`,
    ...causes,
    `What was read says: ${facts.join('; ')}.`,
    '',
  ].join('\n\n');
}
