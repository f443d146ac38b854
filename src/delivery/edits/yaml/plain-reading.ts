/**
 * What readers make of a plain scalar: YAML 1.2's core schema, the types of YAML 1.1, and the library of Go that
 * helm reads with, which takes something of both.
 */
export type PlainReading =
  | 'String'
  | 'Null'
  /** `true` and `false` in their three spellings. */
  | 'Boolean'
  /** A decimal number, the same to all. */
  | 'Number'
  /** `yes`, `off`, `n`: a boolean to some, a string to others. */
  | 'OldBoolean'
  /** A string to most, and a point in time or a number to some: 2024-01-02, e123. */
  | 'DoubtfulString'
  /** A number to some, and a string or another number to others. */
  | 'OtherNumber'
  /** `<<` and `=`: of the language itself to some. */
  | 'Sign';

export function plainReading(text: string): PlainReading {
  return READINGS.find(({ pattern }) => pattern.test(text))?.reading ?? 'String';
}

/** A number that every reader prints as it is written: 1.10 is none, since it is the number 1.1. */
export const isCanonicalNumber = (text: string): boolean =>
  /^(0|-?[1-9]\d{0,14}|-?(0|[1-9]\d{0,8})\.\d{0,5}[1-9])$/.test(text);

// In this order: a decimal number also fits the pattern of the others.
const READINGS: readonly { readonly reading: PlainReading; readonly pattern: RegExp }[] = [
  { reading: 'Null', pattern: /^(~|null|Null|NULL)?$/ },
  { reading: 'Boolean', pattern: /^(true|True|TRUE|false|False|FALSE)$/ },
  { reading: 'OldBoolean', pattern: /^(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$/ },
  // Without a zero in front, which would be octal in YAML 1.1, and without an exponent, which it wants with a sign.
  { reading: 'Number', pattern: /^-?(0|[1-9]\d*)(\.\d+)?$/ },
  { reading: 'OtherNumber', pattern: /^[-+]?(0[bB][01_]+|0[oO][0-7_]+|0[xX][\da-fA-F_]+)$/ },
  {
    reading: 'OtherNumber',
    pattern: /^[-+]?(\d[\d_]*(\.[\d_]*)?|\.[\d_]*\d[\d_]*)([eE][-+]?[\d_]+)?$/,
  },
  // Sexagesimal: 12:30 is 750.
  { reading: 'OtherNumber', pattern: /^[-+]?\d[\d_]*(:[0-5]?\d)+(\.[\d_]*)?$/ },
  { reading: 'OtherNumber', pattern: /^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/ },
  {
    reading: 'DoubtfulString',
    pattern:
      /^\d{4}-\d{1,2}-\d{1,2}(([Tt]|[ \t]+)\d{1,2}:\d{1,2}:\d{1,2}(\.\d*)?([ \t]*(Z|[-+]\d{1,2}(:?\d{2})?))?)?$/,
  },
  { reading: 'DoubtfulString', pattern: /^[-+]?\.?[eE][-+]?[\d_]+$/ },
  { reading: 'Sign', pattern: /^(<<|=)$/ },
];
