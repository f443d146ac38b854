/** What `demo-script` finds out by reading, with no knowledge of the demo's project. */

export interface FailedTest {
  readonly name: string;
  /** The assertion as the log has it, on one line; undefined when the log shows none. */
  readonly assertion: string | undefined;
  /** `file:line` of the first frame of the stack that is not of the runtime. */
  readonly place: string | undefined;
}

export interface ChangedLine {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

export interface FailedStatus {
  readonly name: string;
  readonly jobId: number;
  readonly url: string;
}

/** From statuses as one JSON object per line; lines that are cut or are no objects are passed over. */
export function failedStatuses(jsonLines: string): readonly FailedStatus[] {
  return jsonLines.split('\n').flatMap((line): FailedStatus[] => {
    const status = parseObject(line);
    if (status?.['status'] !== 'failed' || status['allow_failure'] === true) return [];
    const url = String(status['target_url'] ?? '');
    const jobId = Number(/\/jobs\/(\d+)/.exec(url)?.[1] ?? status['id']);
    return Number.isInteger(jobId) ? [{ name: String(status['name'] ?? ''), jobId, url }] : [];
  });
}

/** Pattern for `grep -E`: how common test runners mark a failed test. */
export const FAILURE_PATTERN = '(^|[^A-Za-z])(FAIL|FAILED|not ok|✖|✗|×)([^A-Za-z]|$)';

/** From lines of a log around failed tests, as `grep -n -A` gives them or as they are. */
export function failedTests(log: string): readonly FailedTest[] {
  const lines = log.split('\n').map(stripGrep);
  return lines.flatMap((line, index): FailedTest[] => {
    const name = /(?:^|\s)(?:FAIL|FAILED|not ok(?: \d+)?|✖|✗|×)[:\s-]+(\S.*)$/.exec(line)?.[1]?.trim();
    if (name === undefined) return [];
    const rest = lines.slice(index + 1);
    const next = rest.findIndex((other) => /^\s*(?:PASS|FAIL|ok |not ok|✔|✖)/.test(other));
    const body = (next < 0 ? rest : rest.slice(0, next))
      .map((text) => text.trim())
      .filter((text) => text !== '');
    const stack = body.findIndex((text) => text.startsWith('at '));
    const message = stack < 0 ? body.slice(0, 3) : body.slice(0, stack);
    return [{ name, assertion: message.join(' ') || undefined, place: firstPlace(body) }];
  });
}

/** All `diff` texts of a merge request's changes, wherever they are in the answer. */
export function diffsIn(value: unknown): readonly { readonly file: string; readonly diff: string }[] {
  if (Array.isArray(value)) return value.flatMap(diffsIn);
  if (typeof value !== 'object' || value === null) return [];
  const fields = Object.fromEntries(Object.entries(value));
  const diff = fields['diff'] ?? fields['patch'];
  const file = fields['new_path'] ?? fields['path'] ?? fields['file'];
  if (typeof diff === 'string') return [{ file: String(file ?? 'a file'), diff }];
  return Object.values(fields).flatMap(diffsIn);
}

/** The change that has most to do with a failed test: same words, small edit, code rather than comment or test. */
export function suspect(
  test: FailedTest,
  diffs: readonly { readonly file: string; readonly diff: string }[],
): ChangedLine | undefined {
  const words = new Set(wordsOf(test.name));
  const scored = diffs
    .filter(({ file }) => !/(^|[/._-])(test|tests|spec)([/._-]|$)/.test(file))
    .flatMap(({ file, diff }) => pairs(diff).map((pair) => ({ ...pair, file })))
    .filter(({ before, after }) => !isComment(before) && !isComment(after))
    .map((line) => ({ line, score: 2 * commonWords(words, line) + similarity(line.before, line.after) }))
    .toSorted((a, b) => b.score - a.score);
  return scored[0]?.line;
}

function stripGrep(line: string): string {
  return line.replace(/^\d+[:-]/, '');
}

function firstPlace(body: readonly string[]): string | undefined {
  for (const line of body) {
    const place = /([\w./-]+\.\w+:\d+)(?::\d+)?\)?$/.exec(line)?.[1];
    if (place && !line.includes('node:')) return place;
  }
  return undefined;
}

/** Removed and added lines of a hunk, in their order, one with one. */
function pairs(diff: string): readonly { readonly before: string; readonly after: string }[] {
  const found: { before: string; after: string }[] = [];
  let removed: string[] = [];
  for (const line of diff.split('\n')) {
    if (line.startsWith('---') || line.startsWith('+++')) continue;
    if (line.startsWith('-')) removed.push(line.slice(1).trim());
    else if (line.startsWith('+')) {
      const before = removed.shift();
      if (before !== undefined) found.push({ before, after: line.slice(1).trim() });
    } else removed = [];
  }
  return found;
}

function isComment(line: string): boolean {
  return /^(\/\/|\/\*|\*|#|<!--)/.test(line) || line === '';
}

function wordsOf(text: string): readonly string[] {
  return (text.toLowerCase().match(/[a-z]{4,}/g) ?? []).filter(
    (word) => !['with', 'that', 'this', 'from', 'gets'].includes(word),
  );
}

function commonWords(
  words: ReadonlySet<string>,
  { before, after }: { before: string; after: string },
): number {
  return new Set([...wordsOf(before), ...wordsOf(after)].filter((word) => words.has(word))).size;
}

/** Share of tokens that stayed: 1 for equal lines. */
function similarity(before: string, after: string): number {
  const tokens = (text: string): string[] => text.match(/\w+|[^\w\s]+/g) ?? [];
  const [a, b] = [tokens(before), tokens(after)];
  const left = [...b];
  let same = 0;
  for (const token of a) {
    const position = left.indexOf(token);
    if (position < 0) continue;
    left.splice(position, 1);
    same += 1;
  }
  return (2 * same) / Math.max(1, a.length + b.length);
}

export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined;
  } catch {
    return undefined;
  }
}
