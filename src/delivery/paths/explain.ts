import type { Testimony } from '../evidence/testimony.ts';
import type { GateReport } from '../gate/report.ts';
import type { Bump } from '../port.ts';
import type { DeliveryQuestions } from '../prompts/ask-delivery.ts';
import { readVerdict } from '../prompts/read-verdict.ts';
import type { Verdict } from '../verdict.ts';

export interface ExplainRequest {
  readonly bump: Pick<Bump, 'project' | 'iid' | 'title'>;
  readonly report: GateReport;
  readonly reportText: string;
  readonly live: string | undefined;
  readonly testimony: Testimony;
}

export type ExplainOutcome =
  /** `look`: somebody should look before it is merged; nothing is blocked by that. */
  | { readonly kind: 'Explained'; readonly verdict: Verdict; readonly look: boolean }
  /** Never fatal: the gate is green without an explanation too. */
  | { readonly kind: 'None'; readonly reason: string };

/** What a green gate does not show, in words. Writes nothing; edits are not even looked at. */
export async function explain(
  { bump, report, reportText, live, testimony }: ExplainRequest,
  questions: Pick<DeliveryQuestions, 'explain'>,
  signal?: AbortSignal,
): Promise<ExplainOutcome> {
  const { notes, commits, silence } = testimony;
  const { answer } = await questions.explain(
    { bump, report, reportText, live, notes, commits, silence },
    signal,
  );
  const read = readVerdict(withoutEdits(answer));
  if (read.kind === 'None') return read;
  return { kind: 'Explained', verdict: read.verdict, look: read.verdict.classification === 'escalate' };
}

/** `mechanical` is no class of this path: what it would have edited is for a person to look at. */
function withoutEdits(answer: Awaited<ReturnType<DeliveryQuestions['explain']>>['answer']): typeof answer {
  if (answer.kind !== 'Answered' || typeof answer.value !== 'object' || answer.value === null) return answer;
  const value: Record<string, unknown> = { ...answer.value, edits: [] };
  return {
    kind: 'Answered',
    value: value['classification'] === 'mechanical' ? { ...value, classification: 'escalate' } : value,
  };
}
