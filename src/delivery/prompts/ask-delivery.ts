import { z } from 'zod';
import type { Levers } from '../levers.ts';
import type { RestructureQuestion, ValuesQuestion } from '../migrate/questions.ts';
import type { Answer, Ask } from '../port.ts';
import { Migration, Verdict } from '../verdict.ts';
import { restructureText, valuesText } from './migration-question.ts';
import { type DeliveryPromptTexts, systemPrompt } from './system.ts';
import { type ExplainQuestion, explainText, type TriageQuestion, triageText } from './verdict-question.ts';

/** The four questions of a bump, in words. Imported by agent and evals alike: what is measured is what is shipped. */
export interface DeliveryQuestions {
  triage(question: TriageQuestion, signal?: AbortSignal): Promise<Asked>;
  explain(question: ExplainQuestion, signal?: AbortSignal): Promise<Asked>;
  restructure(question: RestructureQuestion, signal?: AbortSignal): Promise<Answer>;
  valuesMigration(question: ValuesQuestion, signal?: AbortSignal): Promise<Answer>;
}

export interface Asked {
  readonly answer: Answer;
  /** All that the model was shown besides the system prompt. */
  readonly shown: string;
}

export function deliveryQuestions(ask: Ask, texts: DeliveryPromptTexts, levers: Levers): DeliveryQuestions {
  // At once: a prompt that is empty or marked wrongly is found before the first question.
  const system = {
    triage: systemPrompt(texts.triage, levers),
    explain: systemPrompt(texts.explain, levers),
    restructure: systemPrompt(texts.restructure, levers),
    values: systemPrompt(texts['values-migration'], levers),
  };
  const verdict = { name: 'verdict', schema: VERDICT_SCHEMA };
  const migration = { name: 'migration', schema: MIGRATION_SCHEMA };
  return {
    async triage(question, signal) {
      const shown = triageText(question);
      return { answer: await ask({ system: system.triage, user: shown, ...verdict }, signal), shown };
    },
    async explain(question, signal) {
      const shown = explainText(question);
      return { answer: await ask({ system: system.explain, user: shown, ...verdict }, signal), shown };
    },
    restructure: (question, signal) =>
      ask({ system: system.restructure, user: restructureText(question, levers), ...migration }, signal),
    valuesMigration: (question, signal) =>
      ask({ system: system.values, user: valuesText(question, levers), ...migration }, signal),
  };
}

const schemaOf = (of: z.ZodObject): Readonly<Record<string, unknown>> => {
  const { $schema: _draft, ...schema } = z.toJSONSchema(of);
  return schema;
};

export const VERDICT_SCHEMA = schemaOf(Verdict);
export const MIGRATION_SCHEMA = schemaOf(Migration);
