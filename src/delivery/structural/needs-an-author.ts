import type { Finding } from './check.ts';
import { vocabularyAt } from './provenance.ts';
import type { Schema } from './schema.ts';
import { enumOf, schemaAt } from './schema.ts';
import { childOf, type Path } from './value.ts';

/** Required keys that nobody but a person can fill: the schema has no default, no const, no single choice for them. */
export const needsAnAuthor = (findings: readonly Finding[], schema: Schema): readonly Path[] =>
  findings
    .filter(({ kind, path }) => kind === 'Missing' && !isDictated(schema, path))
    .map(({ path }) => path);

function isDictated(schema: Schema, path: Path): boolean {
  const members = enumOf(schemaAt(schema, path));
  const chosen = childOf(schemaAt(schema, path), 'const');
  return (
    members?.length === 1 ||
    chosen !== undefined ||
    vocabularyAt(schema, path).length > (members?.length ?? 0)
  );
}
