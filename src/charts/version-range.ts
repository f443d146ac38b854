/**
 * Versions and ranges as Helm reads them: `1.2.3`, `^1.2`, `~1.2`, `1.x`, `>=1.2 <2`, `1.2 - 1.4`, alternatives with
 * `||`. A pre-release is taken only where the range names one.
 */
export interface Version {
  readonly numbers: readonly [number, number, number];
  readonly pre: readonly string[];
}

/** Undefined for what is no version of two or three numbers. `partial`: one number will do. */
export function parseVersion(text: string, partial = false): Version | undefined {
  const parts =
    /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(
      text.trim(),
    );
  if (parts === null) return undefined;
  const [, major = '0', minor, patch, pre] = parts;
  if (minor === undefined && !partial) return undefined;
  return {
    numbers: [Number(major), Number(minor ?? 0), Number(patch ?? 0)],
    pre: pre === undefined ? [] : pre.split('.'),
  };
}

/** Negative when `one` is the older. Build metadata says nothing. */
export function compareVersions(one: Version, other: Version): number {
  for (const index of [0, 1, 2] as const) {
    const difference = one.numbers[index] - other.numbers[index];
    if (difference !== 0) return difference;
  }
  if (one.pre.length === 0 || other.pre.length === 0) return other.pre.length - one.pre.length;
  for (let index = 0; index < Math.max(one.pre.length, other.pre.length); index += 1) {
    const order = compareIdentifiers(one.pre[index], other.pre[index]);
    if (order !== 0) return order;
  }
  return 0;
}

function compareIdentifiers(one: string | undefined, other: string | undefined): number {
  if (one === other) return 0;
  if (one === undefined) return -1;
  if (other === undefined) return 1;
  const [a, b] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (a && b) return Number(one) - Number(other);
  if (a !== b) return a ? -1 : 1;
  return one < other ? -1 : 1;
}

/**
 * What a reference means among the versions that there are: the very text, else the very version, else the newest
 * in the range. Undefined: none.
 */
export function pickVersion(wanted: string, available: readonly string[]): string | undefined {
  const text = wanted.trim();
  if (available.includes(text)) return text;
  const exact = /^v?\d+\.\d+\.\d+/.test(text) ? parseVersion(text) : undefined;
  if (exact !== undefined)
    return available.find((one) => {
      const version = parseVersion(one);
      return version !== undefined && compareVersions(version, exact) === 0;
    });
  const range = parseRange(text);
  if (range === undefined) return undefined;
  let best: { readonly text: string; readonly version: Version } | undefined;
  for (const one of available) {
    const version = parseVersion(one);
    if (version === undefined || !range(version)) continue;
    if (best === undefined || compareVersions(version, best.version) > 0) best = { text: one, version };
  }
  return best?.text;
}

export type Range = (version: Version) => boolean;

/** Undefined for what is no range. */
export function parseRange(text: string): Range | undefined {
  const alternatives = text.split('||').map((part) => allOf(part.trim()));
  const ranges = alternatives.filter((range) => range !== undefined);
  if (ranges.length < alternatives.length) return undefined;
  return (version) => ranges.some((range) => range(version));
}

interface Bound {
  readonly from: Version | undefined;
  readonly below: Version | undefined;
  /** `below` itself is in it. */
  readonly closed?: boolean;
  /** `from` itself is not in it. */
  readonly open?: boolean;
  readonly not?: boolean;
}

function allOf(text: string): Range | undefined {
  const spaced = text.replace(/^(\S+)\s+-\s+(\S+)$/, '>=$1 <=$2').replace(/([<>=!~^]+)\s+/g, '$1');
  const parts = spaced.split(/[\s,]+/).filter((part) => part !== '');
  if (parts.length === 0) return allOf('*');
  const bounds = parts.map(boundOf).filter((bound) => bound !== undefined);
  if (bounds.length < parts.length) return undefined;
  const namesPre = bounds.some(({ from, below }) => (from?.pre.length ?? 0) + (below?.pre.length ?? 0) > 0);
  return (version) => (version.pre.length === 0 || namesPre) && bounds.every((bound) => isIn(bound, version));
}

function isIn({ from, below, closed = false, open = false, not = false }: Bound, version: Version): boolean {
  const low = from === undefined ? 1 : compareVersions(version, from);
  const high = below === undefined ? -1 : compareVersions(version, below);
  const inside = (open ? low > 0 : low >= 0) && (closed ? high <= 0 : high < 0);
  return inside !== not;
}

function boundOf(part: string): Bound | undefined {
  const parts = /^(\^|~>?|>=|=>|<=|=<|>|<|!=|=)?(.+)$/.exec(part);
  const [, operator = '=', text = ''] = parts ?? [];
  const pattern =
    /^v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?((?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$/.exec(
      text,
    );
  if (pattern === null) return undefined;
  const [, ...written] = pattern;
  const given = written.slice(0, 3).filter((one) => one !== undefined && /^\d+$/.test(one));
  const wild = written.slice(0, 3).findIndex((one) => one === undefined || !/^\d+$/.test(one));
  // Numbers before the first wildcard are what is fixed.
  const fixed = wild < 0 ? 3 : Math.min(wild, given.length);
  const version = parseVersion(
    `${[0, 1, 2].map((index) => (index < fixed ? given[index] : '0')).join('.')}${wild < 0 ? (written[3] ?? '') : ''}`,
  );
  if (version === undefined) return undefined;
  if (fixed === 0) return { from: undefined, below: undefined };
  const next = (index: 0 | 1 | 2): Version => {
    const numbers: [number, number, number] = [...version.numbers];
    numbers[index] += 1;
    for (let rest = index + 1; rest < 3; rest += 1) numbers[rest] = 0;
    // The first of all pre-releases: those of the next version are not in the range either.
    return { numbers, pre: ['0'] };
  };
  const afterFixed = next(fixed === 1 ? 0 : fixed === 2 ? 1 : 2);
  switch (operator) {
    case '^': {
      const [major, minor] = version.numbers;
      const index = major > 0 || fixed === 1 ? 0 : minor > 0 || fixed === 2 ? 1 : 2;
      return { from: version, below: next(index) };
    }
    case '~':
    case '~>':
      return { from: version, below: next(fixed === 1 ? 0 : 1) };
    case '>=':
    case '=>':
      return { from: version, below: undefined };
    case '>':
      return fixed === 3
        ? { from: version, below: undefined, open: true }
        : { from: { ...afterFixed, pre: [] }, below: undefined };
    case '<':
      return { from: undefined, below: version };
    case '<=':
    case '=<':
      return fixed === 3
        ? { from: undefined, below: version, closed: true }
        : { from: undefined, below: afterFixed };
    case '!=':
      return { ...equal(), not: true };
    default:
      return equal();
  }

  function equal(): Bound {
    return fixed === 3
      ? { from: version, below: version, closed: true }
      : { from: version, below: afterFixed };
  }
}
