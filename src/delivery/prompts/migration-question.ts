import type { Levers } from '../levers.ts';
import type { RestructureQuestion, ValuesQuestion } from '../migrate/questions.ts';
import type { Finding } from '../structural/check.ts';
import type { Schema } from '../structural/schema.ts';
import { renderSchema } from '../structural/schema-render.ts';
import { vacancyLines } from '../structural/vacancies.ts';
import { dotted } from '../structural/value.ts';
import { block, line } from './block.ts';

export function restructureText(question: RestructureQuestion, levers: Levers): string {
  return [
    `# Document\n\n${line('File', question.path)}`,
    block('The document', question.document),
    block('What the new schema has against it', findingLines(question.findings)),
    oldSchema(question.oldSchema, levers),
    block('New schema', renderSchema(question.newSchema, levers)),
    'Rewrite the document, and answer with the JSON object.\n',
  ].join('\n');
}

export function valuesText(question: ValuesQuestion, levers: Levers): string {
  return [
    `# Values\n\n${line('Chart', `${question.chart} ${question.from} -> ${question.to}`)}`,
    block('The values', question.values),
    block('What the new schema has against them', findingLines(question.findings)),
    ...(levers.vacancies && question.vacancies.length > 0
      ? [block('Free keys beside the refused ones', vacancyLines(question.vacancies))]
      : []),
    oldSchema(question.oldSchema, levers),
    block('New schema', renderSchema(question.newSchema, levers)),
    'Rewrite the values, and answer with the JSON object.\n',
  ].join('\n');
}

const oldSchema = (schema: Schema | undefined, levers: Levers): string =>
  schema === undefined
    ? '## Old schema\n\nThere was none.\n'
    : block('Old schema', renderSchema(schema, levers));

const findingLines = (findings: readonly Finding[]): string =>
  findings.map(({ path, detail }) => `- ${dotted(path)} ${detail}\n`).join('');
