import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Files below a folder of the tree, relative to the root, in order. */
export function filesBelow(folder: string, ends: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ends))
    .map((name) => `${folder}/${name}`)
    .sort();
}

/** The product's own sources, without their tests. */
export const sources = (): readonly string[] =>
  filesBelow('src', '.ts').filter((path) => !path.endsWith('.test.ts'));

/** One `…events.record(target, type, reason, message)` of the sources. */
export interface RecordedEvent {
  /** `file:line`. */
  readonly where: string;
  /** Reasons that stand there as literals. */
  readonly reasons: readonly string[];
  /** Source text of a reason that is computed; undefined when all of it is literal. */
  readonly computed: string | undefined;
}

/** Every call that records an Event. Found by the shape of the call, so that a new one needs no list here. */
export function recordedEvents(): readonly RecordedEvent[] {
  return sources().flatMap((path) => {
    const file = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true);
    const found: RecordedEvent[] = [];
    const visit = (node: ts.Node): void => {
      const reason = ts.isCallExpression(node) ? reasonArgument(node, file) : undefined;
      if (reason !== undefined) {
        const line = file.getLineAndCharacterOfPosition(reason.getStart(file)).line + 1;
        found.push({ where: `${path}:${line}`, ...literals(reason, file) });
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
    return found;
  });
}

function reasonArgument(call: ts.CallExpression, file: ts.SourceFile): ts.Expression | undefined {
  const callee = call.expression.getText(file);
  return /(^|\.)events\.record$/.test(callee) ? call.arguments[2] : undefined;
}

function literals(reason: ts.Expression, file: ts.SourceFile): Pick<RecordedEvent, 'reasons' | 'computed'> {
  if (ts.isStringLiteral(reason)) return { reasons: [reason.text], computed: undefined };
  if (ts.isConditionalExpression(reason)) {
    const branches = [literals(reason.whenTrue, file), literals(reason.whenFalse, file)];
    return {
      reasons: branches.flatMap((branch) => branch.reasons),
      computed: branches.find((branch) => branch.computed !== undefined)?.computed,
    };
  }
  return { reasons: [], computed: reason.getText(file) };
}

/** Words of a union type, `type Name = 'A' | 'B'`, or of a property of that name in an interface. */
export function unionWords(path: string, name: string): readonly string[] {
  const file = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true);
  const words: string[] = [];
  const collect = (node: ts.Node): void => {
    if (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal)) words.push(node.literal.text);
    ts.forEachChild(node, collect);
  };
  const visit = (node: ts.Node): void => {
    const named =
      (ts.isTypeAliasDeclaration(node) || ts.isPropertySignature(node)) && node.name.getText(file) === name;
    if (named && node.type !== undefined) collect(node.type);
    ts.forEachChild(node, visit);
  };
  visit(file);
  if (words.length === 0) throw new Error(`${path} has no union named ${name}`);
  return [...new Set(words)];
}
