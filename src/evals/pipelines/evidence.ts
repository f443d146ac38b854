import type { PipelineCase } from './pipeline-case.ts';

/** Everything that the case's systems say, whether a tool can show all of it or not; in lower case. */
export function evidenceOf({ name: _name, subject: _subject, want: _want, ...shown }: PipelineCase): string {
  return strings(shown).join('\n').toLowerCase();
}

/** What a tool's answer shows, as text: a model reads strings and not their escapes. */
export function shownBy(answer: string): string {
  try {
    return strings(JSON.parse(answer)).join('\n');
  } catch {
    return answer;
  }
}

function strings(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return value === undefined ? [] : [String(value)];
  return Object.entries(value).flatMap(([key, below]) =>
    Array.isArray(value) ? strings(below) : [key, ...strings(below)],
  );
}
