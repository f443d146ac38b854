/**
 * What makes a small model's answer usable or harmless, each of which can be taken away alone to see what it is
 * worth. Evals do that; the operator always runs with all of them and offers no switch.
 */
export interface Levers {
  /** 1: scalars are listed in the form an edit names them in, instead of the text of files. */
  readonly inventory: boolean;
  /** 2: right and wrong edits stand side by side in the prompt. */
  readonly examples: boolean;
  /** 3: a version is written only when the evidence has it, letter by letter. */
  readonly corroboration: boolean;
  /** 4: a fix of which nothing was applied is an escalation. */
  readonly emptyEscalates: boolean;
  /** 5: the prompt names what no version can bring about; an edit that follows it, or that mends nothing, is refused. */
  readonly direction: boolean;
  /** 6: each field of the answer is defined by who reads it. */
  readonly fieldsByReader: boolean;
  /** 7: for a refused key the free keys beside it are computed; a value with one free place is not dropped. */
  readonly vacancies: boolean;
  /** 8: an optional field with a default says so on its own line of the schema. */
  readonly optionalMarks: boolean;
}

export type Lever = keyof Levers;

/** In the order of their numbers. */
export const LEVERS = [
  'inventory',
  'examples',
  'corroboration',
  'emptyEscalates',
  'direction',
  'fieldsByReader',
  'vacancies',
  'optionalMarks',
] as const satisfies readonly Lever[];

export const ALL_LEVERS: Levers = {
  inventory: true,
  examples: true,
  corroboration: true,
  emptyEscalates: true,
  direction: true,
  fieldsByReader: true,
  vacancies: true,
  optionalMarks: true,
};

export function without(...levers: readonly Lever[]): Levers {
  const rest: Record<Lever, boolean> = { ...ALL_LEVERS };
  for (const lever of levers) rest[lever] = false;
  return rest;
}
