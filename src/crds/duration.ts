import { text } from './schema.ts';

const UNITS = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;
type Unit = keyof typeof UNITS;

/** A Go duration that is not negative: `25m`, `1h30m`, `0s`. */
export const duration = text(32).regex(
  /^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$/,
  'must be a Go duration such as 90s, 25m or 1h30m (days are written in hours: 360h)',
);

/** Milliseconds of a Go duration, with a fraction below one millisecond. Throws RangeError on anything else. */
export function parseDuration(value: string): number {
  if (!duration.safeParse(value).success) {
    throw new RangeError(`"${value}" is not a Go duration: write for example 90s, 25m or 1h30m`);
  }
  let milliseconds = 0;
  for (const [, amount, unit] of value.matchAll(/([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)/g)) {
    if (isUnit(unit)) milliseconds += Number(amount) * UNITS[unit];
  }
  return milliseconds;
}

/** As people read it in a table: `850ms`, `12s`, `4m07s`, `1h02m`. Whole seconds from one second on. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.floor(milliseconds))}ms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m${twoDigits(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h${twoDigits(minutes % 60)}m`;
}

function isUnit(unit: string | undefined): unit is Unit {
  return unit !== undefined && Object.hasOwn(UNITS, unit);
}

const twoDigits = (value: number): string => String(value).padStart(2, '0');
