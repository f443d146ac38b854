import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { EditsReport } from './edits-process.ts';
import { median, type Rows, rounded } from './row.ts';

const RUNS = 3;
const BYTES = 5_000_000;
const MB = 1_000_000;

/** Inventory of a values file of 5 MB, and one edit of it: policy, reading, splicing, reading again. */
export async function editsBench(): Promise<Rows> {
  const folder = await mkdtemp(join(tmpdir(), 'hummingbird-bench-edits-'));
  try {
    const file = join(folder, 'values.yaml');
    await writeFile(file, valuesFile());
    const inventories: EditsReport[] = [];
    const edits: EditsReport[] = [];
    for (let run = 0; run < RUNS; run += 1) {
      inventories.push(await editsProcess('inventory', file));
      edits.push(await editsProcess('edit', file));
    }
    if (edits.some(({ done }) => done !== 1)) throw new Error('bench: the edit was refused');
    const of = (reports: readonly EditsReport[], what: 'milliseconds' | 'growthBytes') =>
      median(reports.map((report) => report[what]));
    const scalars = inventories[0]?.done ?? 0;
    const row = { better: 'lower', runs: RUNS } as const;
    return {
      'inventory.ms': {
        ...{ ...row, unit: 'ms', goal: 5000, value: rounded(of(inventories, 'milliseconds')) },
        note: `5 MB of YAML, ${scalars} scalars`,
      },
      'edit.ms': {
        ...{ ...row, unit: 'ms', goal: 10_000, value: rounded(of(edits, 'milliseconds')) },
        note: `one edit of it, read before and after; RSS + ${rounded(of(edits, 'growthBytes') / MB)} MB`,
      },
      'inventory.rss.mb': {
        ...{ ...row, unit: 'MB', goal: 300, value: rounded(of(inventories, 'growthBytes') / MB) },
        note: 'growth while it is listed',
      },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function valuesFile(): string {
  const parts: string[] = [];
  for (let bytes = 0, index = 0; bytes < BYTES; index += 1) {
    const part = `service${index}:
  image:
    repository: registry.example.org/team/app-${index}
    tag: "1.2.${index}"
  replicas: ${index % 5} # as many as nodes
  ports:
    - name: http
      port: ${8000 + (index % 100)}
  resources: {limits: {cpu: 500m, memory: 512Mi}}
  enabled: true
`;
    parts.push(part);
    bytes += part.length;
  }
  return parts.join('');
}

async function editsProcess(what: 'inventory' | 'edit', file: string): Promise<EditsReport> {
  const script = fileURLToPath(new URL('edits-process.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script, what, file]);
  return JSON.parse(stdout);
}
