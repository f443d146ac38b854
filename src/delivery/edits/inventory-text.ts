import { ALL_LEVERS, type Levers } from '../levers.ts';
import type { RepositoryTree } from '../port.ts';
import { type EditableScalar, type FileInventory, inventoryOf } from './inventory.ts';
import { readableText } from './readable.ts';

export interface InventoryForm {
  /**
   * `Header` (default): the path once, then `key = value`. `PerLine`: path, key and value on each line, for models
   * that build a path anew when it is far above.
   */
  readonly form?: 'Header' | 'PerLine';
  /** For all files together, default 60,000; what does not fit is counted. */
  readonly maxCharacters?: number;
}

const MAX_CHARACTERS = 60_000;

/** Files as a model is shown them: their scalars in the words of an edit, or without lever 1 their text. */
export function describeFiles(
  tree: RepositoryTree,
  paths: readonly string[],
  { inventory }: Levers = ALL_LEVERS,
  form: InventoryForm = {},
): string {
  const sorted = [...new Set(paths)].sort();
  if (inventory)
    return inventoryText(
      sorted.map((path) => inventoryOf(tree, path)),
      form,
    );
  const texts = sorted.map((path) => {
    const source = readableText(tree, path);
    return source.kind === 'Text' ? `FILE ${name(path)}\n${source.text}` : notDescribed(path, source.message);
  });
  return texts.join('\n').slice(0, form.maxCharacters ?? MAX_CHARACTERS);
}

/** Values are one line each, so that none can look like another file. */
export function inventoryText(
  files: readonly FileInventory[],
  { form = 'Header', maxCharacters = MAX_CHARACTERS }: InventoryForm = {},
): string {
  let left = maxCharacters;
  const fits = (line: string): boolean => {
    left -= line.length + 1;
    return left >= 0;
  };
  return files.map((file) => fileLines(file, form, fits).join('\n')).join('\n\n');
}

function fileLines(
  file: FileInventory,
  form: 'Header' | 'PerLine',
  fits: (line: string) => boolean,
): readonly string[] {
  if (file.kind === 'Unreadable') return [notDescribed(file.path, file.reason)];
  const lines = [
    form === 'Header'
      ? `FILE ${name(file.path)} -- editable scalars (key = value):`
      : `FILE ${name(file.path)} -- editable scalars (path, key, from):`,
  ];
  const line = ({ key, value }: EditableScalar): string =>
    form === 'Header' ? `  ${key} = ${value}` : `  path: ${file.path}  key: ${key}  from: ${value}`;
  let shown = 0;
  for (const scalar of file.scalars) {
    const text = line(scalar);
    if (!fits(text)) break;
    lines.push(text);
    shown += 1;
  }
  const hidden = file.scalars.length - shown;
  if (file.scalars.length === 0) lines.push('  (none)');
  if (hidden > 0) lines.push(`  (${hidden} more are not shown, and cannot be edited)`);
  for (const { key, lines: at } of file.duplicates)
    lines.push(`  (${key} stands on lines ${at.join(' and ')}: ambiguous, cannot be edited)`);
  return lines;
}

const notDescribed = (path: string, reason: string): string =>
  `FILE ${name(path)} -- not described: ${reason}`;

/** A path that could break out of its line is shown as a JSON string. */
const name = (path: string): string =>
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(path) ? JSON.stringify(path) : path;
