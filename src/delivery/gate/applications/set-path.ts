/**
 * Values of one assignment as `--set` takes it: `a.b\.c.d=1`. Undefined where the key reaches into a list, which
 * would need the chart's own values. `text`: the value stays a text whatever it looks like.
 */
export function assigned(key: string, value: string, text: boolean): Record<string, unknown> | undefined {
  const segments = key.split(/(?<!\\)\./).map((segment) => segment.replaceAll('\\.', '.'));
  if (segments.some((segment) => segment === '' || /[[\]{}]/.test(segment))) return undefined;
  return segments.reduceRight<Record<string, unknown>>(
    (inside, segment, index) => ({ [segment]: index === segments.length - 1 ? typed(value, text) : inside }),
    {},
  );
}

function typed(value: string, text: boolean): unknown {
  if (text) return value;
  if (value === 'true') return true;
  if (value === 'false') return false;
  if (value === 'null') return null;
  return /^(0|-?[1-9]\d{0,14})$/.test(value) ? Number(value) : value;
}
