/** All that stands at the end of a path: scalars, aliases, empty collections. */
export interface Leaf {
  /** Path in an edit's words, dots between segments, `#2.` in front in the second document; undefined: it has none. */
  readonly key: string | undefined;
  /** Last segment of the path; undefined: it stands in no mapping. */
  readonly name: string | undefined;
  /** Number of the collection around it, where in that it stands, tag and anchor: what an edit has to leave. */
  readonly place: string;
  readonly style: LeafStyle;
  /** As written where it is plain, decoded where it is quoted. */
  readonly value: string;
  /** Offsets in the text, quotes included; equal where there is nothing. */
  readonly start: number;
  readonly end: number;
  /** From 1. */
  readonly line: number;
  /** Inside of `{…}` or `[…]`. */
  readonly flow: boolean;
  /** Why it is not edited, without a subject; undefined: it may be. */
  readonly bar: string | undefined;
}

export type LeafStyle = 'Plain' | 'Single' | 'Double' | 'Block' | 'Alias' | 'Empty';

/** A key that stands more than once in one mapping: readers disagree on which one counts. */
export interface DuplicateKey {
  readonly key: string;
  readonly lines: readonly number[];
}

export interface YamlLeaves {
  readonly kind: 'Leaves';
  /** In the order of the text. */
  readonly leaves: readonly Leaf[];
  /** The same of collections, so that the leaves' places mean something. */
  readonly collections: readonly string[];
  readonly duplicates: readonly DuplicateKey[];
  /** Keys of mappings that take values from elsewhere by `<<`. */
  readonly merging: ReadonlySet<string>;
}

export type YamlReading = YamlLeaves | { readonly kind: 'Unreadable'; readonly reason: string };
