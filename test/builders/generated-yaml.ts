// YAML files as people write them: comments, quotes, flow collections, blocks, anchors, CRLF, several documents.

/** A source of numbers from 0 to below 1; the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Values that readers disagree on stand beside ordinary ones. */
const VALUES = [
  ...[
    'v1.2.3',
    '1.2.3',
    '1.10',
    '1.9',
    '2.0',
    '8080',
    '0',
    '-1',
    '0.25',
    'true',
    'false',
    'True',
    'yes',
    'no',
    'off',
    'y',
  ],
  ...[
    'null',
    '~',
    '0644',
    '0o17',
    '0x1F',
    '1_000',
    '12:30',
    '0e1234',
    '29111998',
    'e123',
    '2024-01-02',
    '.inf',
    '=',
    '1e3',
  ],
  ...[
    'app',
    'registry.example.org/team/app:1.2.3',
    'http://example.org/a?b=c#d',
    'two words',
    '100m',
    '512Mi',
    '-Xmx1g',
    '--flag',
  ],
];
const AWKWARD = [
  "it's",
  'say "x"',
  'a: b',
  'a #b',
  '#c',
  '*x',
  '&x',
  '!x',
  '- x',
  '? x',
  '{a}',
  '[b]',
  'a, b',
  '%',
  '@x',
  '`x`',
];
const MORE = [
  '',
  ' x',
  'x ',
  'back\\slash',
  'ünïcode',
  '\u{1f426}',
  '|',
  '>',
  '---',
  '...',
  ':',
  'a:',
  ',',
  '<<',
];

/** Any value that an edit could be asked to write. */
export const anyValue = (random: () => number): string => pick(random, [...VALUES, ...AWKWARD, ...MORE]);

export function yamlFile(random: () => number): string {
  const end = random() < 0.2 ? '\r\n' : '\n';
  const documents = random() < 0.15 ? 2 + Math.floor(random() * 2) : 1;
  const lines: string[] = [];
  if (random() < 0.3) lines.push('---');
  for (let index = 0; index < documents; index += 1) {
    if (index > 0) lines.push('---');
    lines.push(...new Writer(random).document());
  }
  const text = lines.join(end) + (random() < 0.9 ? end : '');
  return (random() < 0.1 ? '\ufeff' : '') + text;
}

class Writer {
  readonly #random: () => number;
  readonly #step: number;
  #names = 0;
  readonly #anchors: string[] = [];

  constructor(random: () => number) {
    this.#random = random;
    this.#step = random() < 0.7 ? 2 : 4;
  }

  document(): readonly string[] {
    return this.#mapping(0, 0);
  }

  #mapping(indent: number, depth: number): string[] {
    const lines: string[] = [];
    const entries = 1 + Math.floor(this.#random() * 4);
    for (let index = 0; index < entries; index += 1) {
      if (this.#random() < 0.15) lines.push(`${' '.repeat(indent)}# note: ${anyValue(this.#random)}`);
      if (this.#random() < 0.1) lines.push('');
      lines.push(...this.#entry(`${' '.repeat(indent)}${this.#key()}:`, indent, depth));
    }
    return lines;
  }

  #entry(head: string, indent: number, depth: number): string[] {
    const kind = this.#random();
    if (kind < 0.15 && depth < 3)
      return [head + this.#comment(), ...this.#mapping(indent + this.#step, depth + 1)];
    if (kind < 0.25 && depth < 3) {
      const at = this.#random() < 0.5 ? indent : indent + this.#step;
      return [head + this.#comment(), ...this.#list(at, depth + 1)];
    }
    if (kind < 0.32) return [`${head} ${this.#flow(0)}${this.#comment()}`];
    if (kind < 0.36) {
      const text = ' '.repeat(indent + this.#step);
      return [
        `${head} ${pick(this.#random, ['|', '>-', '|+'])}`,
        `${text}tag: v1.2.3`,
        '',
        `${text}# no comment`,
      ];
    }
    if (kind < 0.39) return [`${head} two`, `${' '.repeat(indent + this.#step)}lines`];
    if (kind < 0.42) {
      const name = `n${this.#anchors.length}`;
      this.#anchors.push(name);
      return [`${head} &${name} ${this.#scalar(false)}`];
    }
    if (kind < 0.45 && this.#anchors.length > 0) return [`${head} *${pick(this.#random, this.#anchors)}`];
    if (kind < 0.48) return [head + this.#comment()];
    const gap = this.#random() < 0.9 ? ' ' : '   ';
    return [`${head}${gap}${this.#scalar(false)}${this.#comment()}`];
  }

  #list(indent: number, depth: number): string[] {
    const lines: string[] = [];
    const items = 1 + Math.floor(this.#random() * 3);
    for (let index = 0; index < items; index += 1) {
      const head = `${' '.repeat(indent)}- `;
      if (this.#random() < 0.3 && depth < 3) {
        const [first = '', ...rest] = this.#mapping(indent + 2, depth + 1).filter((line) =>
          /^ *[^ #]/.test(line),
        );
        lines.push(head + first.trimStart(), ...rest);
      } else lines.push(`${head}${this.#scalar(false)}${this.#comment()}`);
    }
    return lines;
  }

  #flow(depth: number): string {
    const items = Array.from({ length: Math.floor(this.#random() * 4) }, () =>
      depth < 2 && this.#random() < 0.2 ? this.#flow(depth + 1) : this.#scalar(true),
    );
    const gap = this.#random() < 0.5 ? ' ' : '';
    if (this.#random() < 0.5) return `[${gap}${items.join(`,${gap} `)}${gap}]`;
    return `{${gap}${items.map((item) => `${this.#key()}: ${item}`).join(', ')}${gap}}`;
  }

  #scalar(flow: boolean): string {
    const kind = this.#random();
    if (kind < 0.55) {
      const value = pick(this.#random, VALUES);
      return flow && !/^[\w.-]+$/.test(value) ? 'plain' : value;
    }
    const value = anyValue(this.#random);
    return kind < 0.8 ? `"${value.replace(/["\\]/g, '\\$&')}"` : `'${value.replaceAll("'", "''")}'`;
  }

  #comment(): string {
    return this.#random() < 0.2 ? pick(this.#random, [' # note', '   # v1.2.3', '\t# tab', ' ']) : '';
  }

  #key(): string {
    const name = `${pick(this.#random, ['image', 'tag', 'port', 'enabled', 'a-b', 'with space', 'x/y'])}${this.#names++}`;
    return this.#random() < 0.1 ? `"${name}"` : name;
  }
}

function pick<T>(random: () => number, from: readonly T[]): T {
  const found = from[Math.floor(random() * from.length)];
  if (found === undefined) throw new Error('pick: nothing to pick from');
  return found;
}
