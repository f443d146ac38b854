import type { RepositoryTree } from '../port.ts';
import type { Dropped } from './rendering/dropped-versions.ts';
import type { DroppedVersion } from './report.ts';
import { createTurns } from './turns.ts';

export interface Scan {
  readonly versions: readonly DroppedVersion[];
  /** Files that may declare some and were not read, each in one sentence. */
  readonly unscanned: readonly string[];
}

const MAX_CONSUMERS = 200;
/** Lines with an apiVersion of the groups that are looked at closer. */
const MAX_DECLARATIONS = 5000;

/**
 * The manifests that declare a dropped version, wherever a line says so: as a document of its own, nested in
 * another one, in a text block, or in a template. Line by line, since a template is no YAML.
 */
export async function findConsumers(tree: RepositoryTree, dropped: readonly Dropped[]): Promise<Scan> {
  if (dropped.length === 0) return { versions: [], unscanned: [] };
  const consumers = dropped.map((): DroppedVersion['consumers'][number][] => []);
  const unscanned: string[] = [];
  const turn = createTurns();
  let declarations = 0;
  const groups = dropped.map(({ group }) => Buffer.from(group));
  for (const path of tree.paths) {
    if (!/\.(ya?ml|tpl|json)$/.test(path)) continue;
    const entry = tree.entry(path);
    if (entry?.kind === 'TooLarge')
      unscanned.push(`${path} has ${entry.size} bytes and was not searched for dropped API versions.`);
    if (entry?.kind !== 'File') continue;
    const bytes = Buffer.from(entry.bytes.buffer, entry.bytes.byteOffset, entry.bytes.byteLength);
    if (!groups.some((group) => bytes.includes(group))) continue;
    await turn(bytes.length);
    const lines = bytes.toString().split(/\r\n|\r|\n/);
    for (const [at, line] of lines.entries()) {
      const declared = DECLARATION.exec(line);
      if (declared?.groups === undefined) continue;
      const { group, version } = declared.groups;
      if (!dropped.some((one) => one.group === group && one.versions.includes(version ?? ''))) continue;
      declarations += 1;
      if (declarations > MAX_DECLARATIONS) break;
      const around = neighbours(lines, at);
      for (const [index, one] of dropped.entries()) {
        if (one.group !== group || !one.versions.includes(version ?? '')) continue;
        if (around.kind !== undefined && around.kind !== one.kind) continue;
        const found = consumers[index] ?? [];
        if (found.length === MAX_CONSUMERS)
          unscanned.push(
            `More than ${MAX_CONSUMERS} manifests declare dropped versions of ${one.crd}; the others are not listed.`,
          );
        if (found.length <= MAX_CONSUMERS)
          found.push({
            path,
            line: at + 1,
            object: `${around.kind ?? one.kind}${around.name === undefined ? '' : `/${around.name}`}`,
          });
      }
    }
  }
  if (declarations > MAX_DECLARATIONS)
    unscanned.push(
      `More than ${MAX_DECLARATIONS} lines declare dropped API versions; the others were not looked at.`,
    );
  return {
    versions: dropped.map((one, index) => ({
      ...one,
      consumers: (consumers[index] ?? []).slice(0, MAX_CONSUMERS),
    })),
    unscanned,
  };
}

/** `apiVersion: group/version` in every form a line can have it, JSON and flow mappings included. */
const DECLARATION =
  /(?:^|[\s{,"'-])apiVersion["']?\s*:\s*["']?(?<group>[a-z0-9.-]+)\/(?<version>[a-z0-9]+)(?![a-z0-9.-])/;

interface Neighbours {
  readonly kind: string | undefined;
  readonly name: string | undefined;
}

/** How far kind and name of an object stand from its apiVersion: annotations may be long. */
const NEAR = 60;

/** Longer ones name nothing. */
const MAX_LINE_CHARACTERS = 1000;

/** Kind and name beside a declaration: lines of the same mapping, before and after. */
function neighbours(lines: readonly string[], at: number): Neighbours {
  const line = lines[at] ?? '';
  const flow = /kind["']?\s*:\s*["']?(\w+)/.exec(line)?.[1];
  if (flow !== undefined)
    return { kind: flow, name: /(?<![\w-])name["']?\s*:\s*["']?([\w.-]+)/.exec(line)?.[1] };
  const depth = keyColumn(line);
  const before = /^\s*-\s/.test(line) ? [] : siblings(lines, at, -1, depth).reverse();
  const mapping = [...before, ...siblings(lines, at, 1, depth)];
  const kind = mapping.map((one) => scalarOf(one, 'kind', depth)).find((value) => value !== undefined);
  return { kind, name: nameIn(mapping, depth) };
}

/** Column of the key: behind the dash of a list item. */
const keyColumn = (line: string): number => /^[\s-]*/.exec(line)?.[0].length ?? 0;

/** Lines from here to where the mapping ends. */
function siblings(lines: readonly string[], at: number, step: 1 | -1, depth: number): string[] {
  const result: string[] = [];
  for (let index = at + step; Math.abs(index - at) <= NEAR; index += step) {
    const line = lines[index];
    if (line === undefined || /^(---|\.\.\.)/.test(line)) break;
    if (line.trim() === '' || /^\s*(#|\{\{)/.test(line)) continue;
    const indent = /^\s*/.exec(line)?.[0].length ?? 0;
    const dash = /^\s*-\s/.test(line) && keyColumn(line) === depth;
    // A dash begins the mapping when it is met backwards, and the next item when it is met forwards.
    if (dash && step === 1) break;
    if (indent < depth && !dash) break;
    result.push(line);
    if (dash) break;
  }
  return result;
}

function scalarOf(line: string, key: string, depth: number): string | undefined {
  if (line.length > MAX_LINE_CHARACTERS || keyColumn(line) !== depth) return undefined;
  return new RegExp(`^[\\s-]*["']?${key}["']?\\s*:\\s*["']?([\\w.{}$ -]+?)["',]*\\s*(?:#.*)?$`).exec(
    line,
  )?.[1];
}

function nameIn(mapping: readonly string[], depth: number): string | undefined {
  const start = mapping.findIndex(
    (line) => keyColumn(line) === depth && /^[\s-]*["']?metadata["']?\s*:/.test(line),
  );
  if (start < 0) return undefined;
  const flow = /\{.*?(?<![\w-])name["']?\s*:\s*["']?([\w.-]+)/.exec(mapping[start] ?? '')?.[1];
  if (flow !== undefined) return flow;
  let inner: number | undefined;
  for (const line of mapping.slice(start + 1)) {
    const column = keyColumn(line);
    if (column <= depth) return undefined;
    inner ??= column;
    const name = column === inner ? scalarOf(line, 'name', inner) : undefined;
    if (name !== undefined) return name;
  }
  return undefined;
}
