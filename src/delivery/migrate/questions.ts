import type { Answer } from '../port.ts';
import type { Finding } from '../structural/check.ts';
import type { Schema } from '../structural/schema.ts';
import type { Vacancy } from '../structural/vacancies.ts';
import type { Value } from '../structural/value.ts';

/** What the prompt `restructure` is filled with. */
export interface RestructureQuestion {
  /** File that the document stands in. */
  readonly path: string;
  /** With the new apiVersion in it already. */
  readonly document: string;
  readonly findings: readonly Finding[];
  readonly oldSchema: Schema | undefined;
  readonly newSchema: Schema;
}

/** What the prompt `values-migration` is filled with. */
export interface ValuesQuestion {
  readonly chart: string;
  readonly from: string;
  readonly to: string;
  /** What the repository sets, merged, as YAML. */
  readonly values: string;
  readonly findings: readonly Finding[];
  readonly vacancies: readonly Vacancy[];
  readonly oldSchema: Schema | undefined;
  readonly newSchema: Schema;
}

/** Puts a question to the model; its answer is a `Migration` or is refused. */
export type AskFor<Question> = (question: Question, signal?: AbortSignal) => Promise<Answer>;

/** A value that did not come across, for people. */
export interface LostValue {
  /** File or application that it was in. */
  readonly where: string;
  readonly key: string;
  readonly value: Value;
}
