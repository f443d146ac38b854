import type { LoopResult } from '../../src/agent/loop.ts';
import { resultOf } from '../../src/controllers/run/loop-report.ts';
import { phaseOf } from '../../src/controllers/run/steps/end.ts';
import { failureText, resultText } from '../../src/controllers/run/texts.ts';
import { aRun } from './run.ts';

/** What people see of a loop's end: phase, reason and message of the run, and the text of its note. */
export function told(end: LoopResult) {
  const { reason, message, reported, text, transcriptExcerpt: transcript } = resultOf(aRun(), end, (t) => t);
  const note = reported
    ? resultText({ answer: text, reason, message, model: 'm', transcript, invitesReply: false })
    : failureText(reason, text, transcript);
  return { phase: phaseOf(reason), reason, message, note };
}
