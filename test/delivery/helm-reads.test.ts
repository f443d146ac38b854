// The library that helm reads YAML with, over generated files before and after an edit: one run of helm for all.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { ensureHelm } from '../../hack/cluster/helm.ts';
import { applyEdits } from '../../src/delivery/edits/apply.ts';
import { inventory } from '../../src/delivery/edits/inventory.ts';
import { without } from '../../src/delivery/levers.ts';
import { anyValue, seeded, yamlFile } from '../builders/generated-yaml.ts';
import { aTree } from '../builders/tree.ts';

const CASES = 3000;
const PATH = 'values.yaml';

interface Case {
  readonly key: string;
  readonly to: string;
  /** The scalar as it is written now. */
  readonly token: string;
  readonly before: string;
  readonly after: string;
}

function cases(): readonly Case[] {
  const found: Case[] = [];
  for (let seed = 1; found.length < CASES; seed += 1) {
    const random = seeded(seed);
    const before = yamlFile(random);
    const listed = inventory(PATH, before);
    if (listed.kind !== 'Inventory') throw new Error(listed.reason);
    // helm reads the first document of a file.
    const scalars = listed.scalars.filter(({ key }) => !key.startsWith('#'));
    const scalar = scalars[Math.floor(random() * scalars.length)];
    if (scalar === undefined) continue;
    const { key, value: from } = scalar;
    const to = anyValue(random);
    const policy = { allow: ['**'], deny: [], scope: [PATH], evidence: '' };
    const edit = { path: PATH, key, from, to, rationale: '' };
    const { files, applied } = applyEdits(aTree({ [PATH]: before }), policy, [edit], {
      levers: without('corroboration'),
    });
    const [file] = files;
    if (file === undefined || applied[0] === undefined) continue;
    const after = new TextDecoder('utf-8', { ignoreBOM: true }).decode(file.bytes);
    found.push({ key, to, token: applied[0].after, before, after });
  }
  return found;
}

const TEMPLATE = `apiVersion: v1
kind: ConfigMap
metadata: {name: read}
data:
{{- range $path, $_ := .Files.Glob "cases/*.yaml" }}
  {{ base $path }}: {{ $.Files.Get $path | fromYaml | toJson | quote }}
{{- end }}
`;

type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values => typeof value === 'object' && value !== null;

function holderOf(value: unknown, segments: readonly string[]): Values {
  const holder = segments.reduce<unknown>(
    (around, name) => (isValues(around) ? around[name] : undefined),
    value,
  );
  if (!isValues(holder)) throw new Error(`nothing stands at ${segments.join('.')}`);
  return holder;
}

describe('helm and edits', () => {
  let folder = '';
  const made = cases();
  const read = new Map<string, unknown>();

  beforeAll(async () => {
    const helm = await ensureHelm((line) => console.error(`helm: ${line}`));
    folder = await mkdtemp(join(tmpdir(), 'hummingbird-helm-reads-'));
    await mkdir(join(folder, 'cases'));
    await mkdir(join(folder, 'templates'));
    await writeFile(join(folder, 'Chart.yaml'), 'apiVersion: v2\nname: read\nversion: 1.0.0\n');
    await writeFile(join(folder, 'templates/map.yaml'), TEMPLATE);
    for (const [index, { before, after }] of made.entries()) {
      await writeFile(join(folder, 'cases', `${index}-before.yaml`), before);
      await writeFile(join(folder, 'cases', `${index}-after.yaml`), after);
    }
    const { stdout } = await promisify(execFile)(helm, ['template', 'read', folder], {
      maxBuffer: 256 * 1024 * 1024,
      env: { PATH: process.env['PATH'], HOME: folder },
    });
    const { data } = z.object({ data: z.record(z.string(), z.string()) }).parse(parse(stdout));
    for (const [name, json] of Object.entries(data)) read.set(name, JSON.parse(json));
  }, 600_000);

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('BR-51 helm reads the new value as it was meant, and everything else as before', () => {
    let compared = 0;
    for (const [index, { key, to, token, before, after }] of made.entries()) {
      const old = read.get(`${index}-before.yaml`);
      // What this reader refuses anyway proves nothing.
      if (!isValues(old) || typeof old['Error'] === 'string') continue;
      compared += 1;
      const now = read.get(`${index}-after.yaml`);
      const segments = key.split('.');
      const last = segments.pop() ?? '';
      const holder = holderOf(now, segments);
      const expected: unknown = /^["']/.test(token) ? to : parse(token);
      expect([holder[last], before, after, token]).toEqual([expected, before, after, token]);
      holder[last] = holderOf(old, segments)[last];
      expect(now).toEqual(old);
    }
    expect(compared).toBeGreaterThan(CASES * 0.8);
  });
});
