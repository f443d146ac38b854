// What the documents say of the tree, compared with the tree.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SKIP_REASONS } from '../../src/bridge/decide/reasons.ts';
import { RUN_CONDITIONS, RUN_REASONS } from '../../src/crds/reasons.ts';
import { anchors, codeWords, links, section, tableRows } from './markdown.ts';
import { filesBelow, read, recordedEvents, root, sources, unionWords } from './sources.ts';

const OPERATIONS = 'docs/operations.md';
const ARCHITECTURE = 'docs/architecture.md';
const TESTING = 'docs/testing.md';

const documents = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...filesBelow('docs', '.md'),
  ...filesBelow('hack', '.md'),
];

/** Words in backticks in the column of a table. */
const column = (path: string, heading: string, index = 0): readonly string[] =>
  tableRows(section(path, heading)).flatMap((cells) => codeWords(cells[index] ?? ''));

const sorted = (words: Iterable<string>): readonly string[] => [...new Set(words)].sort();
const allMatches = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, word = '']) => word);

describe('hummingbird operator --help', () => {
  const help = execFileSync(process.execPath, [join(root, 'src/main.ts'), 'operator', '--help'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });

  it('has exactly the flags that the operations page has', () => {
    const flags = allMatches(help, /^\s+(?:-\w, )?(--[a-z-]+)/gm).filter((flag) => flag !== '--help');
    expect(flags.length).toBeGreaterThan(10);
    expect(sorted(column(OPERATIONS, 'Flags'))).toEqual(sorted(flags));
  });

  it('has the defaults that the operations page has', () => {
    const rows = tableRows(section(OPERATIONS, 'Flags'));
    const defaults = help
      .replace(/\s+/g, ' ')
      .matchAll(/(--[a-z-]+) <\w+>(?:(?! --).)*?\(default: "?([^")]+)"?\)/g);
    const wrong = [...defaults].filter(([, flag, value = '']) => {
      const cells = rows.find((row) => row[0] === `\`${flag}\``);
      return cells?.[1]?.includes(value) !== true;
    });
    expect(wrong.map(([, flag, value]) => `${flag} is ${value}`)).toEqual([]);
  });
});

it('every environment variable that is read is on the operations page', () => {
  const text = sources().map(read).join('\n');
  const named = allMatches(text, /\benv\['([A-Z_]+)'\]/g);
  const required = allMatches(read('src/settings/operator.ts'), /^ {2}([A-Z_]{6,}): z$/gm);
  expect(required.length).toBeGreaterThan(0);
  const documented = codeWords(section(OPERATIONS, 'Environment'));
  expect([...named, ...required].filter((name) => !documented.includes(name))).toEqual([]);
});

it('the operations page has exactly the metrics that the code registers', () => {
  const registered = allMatches(sources().map(read).join('\n'), /name: '(hummingbird_\w+)'/g);
  expect(sorted(column(OPERATIONS, 'Metrics'))).toEqual(sorted(registered));
});

it('the operations page has exactly the reasons of an AgentRun', () => {
  expect(sorted(column(OPERATIONS, 'Reasons of an AgentRun'))).toEqual(sorted(RUN_REASONS));
});

it('the operations page tells the phase of each reason as the code does', () => {
  const phases = new Map(
    [...read('src/controllers/run/steps/end.ts').matchAll(/^ {2}(\w+): '(\w+)',$/gm)].map(
      ([, reason = '', phase = '']) => [reason, phase],
    ),
  );
  const told = tableRows(section(OPERATIONS, 'Reasons of an AgentRun')).map((cells) => [
    codeWords(cells[0] ?? '')[0],
    cells[1],
  ]);
  expect(Object.fromEntries(told)).toEqual(
    Object.fromEntries(RUN_REASONS.map((reason) => [reason, phases.get(reason)])),
  );
});

it('the operations page has exactly the conditions that controllers set', () => {
  const text = sources()
    .filter((path) => path.startsWith('src/controllers/') && !path.endsWith('/manifests.ts'))
    .map(read)
    .join('\n');
  const set = allMatches(text, /(?:\btype: |\btype = |\bcondition\(\s*)'([A-Z]\w+)'/g);
  expect(sorted(column(OPERATIONS, 'Conditions', 1))).toEqual(sorted([...RUN_CONDITIONS, ...set]));
});

describe('the Events of the operations page', () => {
  /** What a computed reason can be; a new one fails below and wants a line here. */
  const COMPUTED: Readonly<Record<string, () => readonly string[]>> = {
    reason: () => [...RUN_REASONS, ...Object.keys(SKIP_REASONS)],
    'step.reason': () => RUN_REASONS,
    'outcome.reason': () => RUN_REASONS,
    'after.reason': () =>
      allMatches(read('src/controllers/workflow/decide.ts'), /condition\(\s*'Ready',\s*\w+,\s*'(\w+)'/g),
    'reason.reason': () => unionWords('src/controllers/pool/reap-reason.ts', 'reason'),
    'action.reason': () => [],
    '`Placeholder${how}`': () => ['PlaceholderPosted', 'PlaceholderFound'],
  };
  const events = recordedEvents();

  it('are found in the code by their calls', () => {
    expect(events.length).toBeGreaterThan(20);
    const unknown = events.filter(({ computed }) => computed !== undefined && !(computed in COMPUTED));
    expect(unknown).toEqual([]);
  });

  it('are exactly those that the code records', () => {
    const recorded = events.flatMap(({ reasons, computed }) => [
      ...reasons,
      ...(computed === undefined ? [] : (COMPUTED[computed]?.() ?? [])),
    ]);
    const told = column(OPERATIONS, 'Events');
    const isRunReason = (word: string) => RUN_REASONS.some((reason) => reason === word);
    expect(told).toContain('NoteUpdated');
    // Reasons of runs have a table of their own, which another test compares.
    expect(sorted(recorded.filter((reason) => !isRunReason(reason) && !told.includes(reason)))).toEqual([]);
    expect(told.filter((word) => !recorded.includes(word))).toEqual([]);
  });
});

describe('the layout page', () => {
  const rows = tableRows(section(ARCHITECTURE, 'Layout and import arrows'));
  const rooms = new Map(
    rows.map((cells) => [codeWords(cells[0] ?? '')[0] ?? '', codeWords(cells[2] ?? '')] as const),
  );

  it('has a row for every room below src, and for nothing else', () => {
    const tree = readdirSync(join(root, 'src'), { withFileTypes: true }).map((entry) =>
      entry.isDirectory() ? `${entry.name}/` : entry.name,
    );
    expect(sorted(rooms.keys())).toEqual(sorted(tree));
  });

  it('has the import arrows that are checked', () => {
    const Rule = z.object({
      name: z.string(),
      from: z.object({ path: z.string().optional() }),
      to: z.object({ pathNot: z.array(z.string()).optional() }),
    });
    const config: unknown = createRequire(import.meta.url)(join(root, '.dependency-cruiser.cjs'));
    const checked = z
      .object({ forbidden: z.array(Rule) })
      .parse(config)
      .forbidden.filter(({ name }) => name.endsWith('-arrows'))
      .map(({ from, to }) => {
        const [own, ...allowed] = [from.path ?? '', ...(to.pathNot ?? [])].map(plain);
        return [own, sorted(allowed.filter((target) => target !== own))] as const;
      });
    expect(checked.length).toBeGreaterThan(8);
    for (const [room, allowed] of checked)
      expect([room, sorted(rooms.get(room ?? '') ?? [])]).toEqual([room, allowed]);
  });

  /** `^src/(a|b)/port\.ts$` as people write it: `{a,b}/port.ts`. */
  function plain(pattern: string): string {
    return pattern
      .replace(/^\^src\//, '')
      .replace(/\$$/, '')
      .replaceAll('\\.', '.')
      .replace(/\(([^)]+)\)/g, (_, names: string) => `{${names.replaceAll('|', ',')}}`);
  }
});

it('the architecture page has exactly the steps of a run', () => {
  const [, type = ''] = /export type Step =([\s\S]*?);\n\n/.exec(read('src/controllers/run/decide.ts')) ?? [];
  const steps = allMatches(type, /kind: '(\w+)'/g);
  expect(steps.length).toBeGreaterThan(10);
  expect(sorted(column(ARCHITECTURE, 'One run, step by step'))).toEqual(
    expect.arrayContaining([...sorted(steps)]),
  );
  const first = tableRows(section(ARCHITECTURE, 'One run, step by step')).map(
    (cells) => codeWords(cells[0] ?? '')[0],
  );
  expect(first.filter((word) => !steps.includes(word ?? ''))).toEqual([]);
});

it('the testing page has exactly the keys of the bench', () => {
  const keys = allMatches(read('bench/main.ts'), /keys: \[([^\]]+)\]/g).flatMap((list) =>
    allMatches(list, /'([\w.]+)'/g),
  );
  expect(sorted(column(TESTING, 'Bench'))).toEqual(sorted(keys));
});

it('the testing page has a row for every folder of test/', () => {
  const folders = readdirSync(join(root, 'test'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `test/${name}`);
  const documented = column(TESTING, 'Layout');
  expect(folders.filter((folder) => !documented.some((word) => word.startsWith(folder)))).toEqual([]);
});

describe.each(documents)('%s', (path) => {
  const text = read(path);

  it('names npm scripts that exist', () => {
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(read('package.json')));
    const named = allMatches(text, /\bnpm run ([\w:-]+)/g);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it('has links that lead somewhere', () => {
    const broken = links(text).filter((target) => {
      if (/^[a-z]+:/.test(target)) return false;
      const [file = '', anchor] = target.split('#');
      const goal = file === '' ? path : normalize(join(dirname(path), file));
      if (!existsSync(join(root, goal))) return true;
      return anchor !== undefined && !anchors(read(goal)).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it('names paths that exist', () => {
    const paths = codeWords(text).filter((word) =>
      /^(src|test|hack|bench|config|docs|prompts)\/[\w./-]*$/.test(word),
    );
    // Made by running, not kept in Git.
    const made = new Set(['bench/results.json']);
    expect(paths.filter((word) => !made.has(word) && !existsSync(join(root, word)))).toEqual([]);
  });
});
