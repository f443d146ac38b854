import type { Refusal } from './refusal.ts';
import { isVersionShaped } from './version-shape.ts';
import type { Leaf } from './yaml/leaf.ts';
import { isCanonicalNumber, plainReading } from './yaml/plain-reading.ts';

export type WrittenScalar =
  | { readonly kind: 'Written'; readonly token: string; readonly value: string | number | boolean }
  | ({ readonly kind: 'Refused' } & Refusal);

/**
 * How `to` is written in the place of a scalar: of the type that is there, quoted as it was, or quoted now where a
 * reader would take it for something else.
 */
export function writtenScalar(leaf: Pick<Leaf, 'style' | 'value' | 'flow'>, to: string): WrittenScalar {
  if (leaf.style === 'Single') return text(singleQuoted(to), to);
  if (leaf.style === 'Double') return text(doubleQuoted(to), to);
  const before = plainReading(leaf.value);
  switch (before) {
    case 'String':
    case 'DoubtfulString':
      return text(plainOrQuoted(to, leaf.flow), to);
    case 'Boolean':
    case 'OldBoolean':
      return (
        boolean(to) ??
        typeChange(`is a boolean${before === 'Boolean' ? '' : ' to some readers'}: write true or false`)
      );
    case 'Number':
      // A version that looks like a number: 1.10 would be 1.1, and is a text from now on.
      return (
        number(to) ??
        (isVersionShaped(to)
          ? text(plainOrQuoted(to, leaf.flow), to)
          : typeChange('is a number, and that is none that all readers take for the same'))
      );
    case 'Null':
      return boolean(to) ?? number(to) ?? text(plainOrQuoted(to, leaf.flow), to);
    case 'OtherNumber':
    case 'Sign':
      return typeChange(`is read differently by YAML 1.1 and 1.2 (${leaf.value})`);
  }
}

const text = (token: string, value: string): WrittenScalar => ({ kind: 'Written', token, value });

const boolean = (to: string): WrittenScalar | undefined =>
  plainReading(to) === 'Boolean'
    ? { kind: 'Written', token: to, value: to.toLowerCase() === 'true' }
    : undefined;

const number = (to: string): WrittenScalar | undefined =>
  isCanonicalNumber(to) ? { kind: 'Written', token: to, value: Number(to) } : undefined;

const typeChange = (message: string): WrittenScalar => ({ kind: 'Refused', reason: 'TypeChange', message });

const plainOrQuoted = (to: string, flow: boolean): string =>
  plainReading(to) === 'String' && isPlain(to, flow) ? to : doubleQuoted(to);

/** Whether it is one plain scalar wherever it stands; narrower than YAML's own rule, and quoting does no harm. */
function isPlain(to: string, flow: boolean): boolean {
  if (flow) return /^[A-Za-z0-9_./]([A-Za-z0-9_./+@-]*[A-Za-z0-9_])?$/.test(to);
  if (/^[-?:](\s|$)|^(---|\.\.\.)/.test(to)) return false;
  return !/^[\s,[\]{}#&*!|>'"%@`?:=]|:(\s|$)|\s#|\s$/.test(to);
}

const singleQuoted = (to: string): string => `'${to.replaceAll("'", "''")}'`;

/** What is in it is one line: nothing but these two has to be escaped. */
const doubleQuoted = (to: string): string => `"${to.replace(/["\\]/g, '\\$&')}"`;
