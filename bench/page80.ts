import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { PageReport } from './page80-process.ts';
import { median, type Rows, rounded } from './row.ts';

/** A commit that touches many components: one page as KubeArchive gives it. */
export const ITEMS = 500;
export const ITEM_BYTES = 160_000;
export const PAGE_BYTES = ITEMS * ITEM_BYTES;
/** 20 MB, as for the spill: from then on the process has the buffers that any stream takes. */
export const WARM_UP_ITEMS = 125;
export const WARM_UP_SHA = 'a'.repeat(40);

const RUNS = 3;
const MB = 1_000_000;

/** An 80 MB page of a list through the tool into a file: growth of RSS item by item, and parsed as a whole. */
export async function page80Bench(): Promise<Rows> {
  const server = spawn(process.execPath, [script('page80-server.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const [url] = await once(createInterface({ input: server.stdout }), 'line');
    const streamed: PageReport[] = [];
    const buffered: PageReport[] = [];
    for (let run = 0; run < RUNS; run += 1) {
      streamed.push(await measured([String(url), 'streamed']));
      buffered.push(await measured([String(url), 'buffered']));
    }
    const row = { unit: 'MB', runs: RUNS, goal: 12 } as const;
    return {
      'page80.rss.mb': {
        ...row,
        value: rounded(median(streamed.map(growth))),
        better: 'lower',
        note: `${ITEMS} items of a list, ${rounded((streamed[0]?.bytes ?? 0) / MB)} MB: ${told(streamed)}`,
      },
      // The ablation: above the goal, or reading item by item would be of no use.
      'page80.buffered.mb': {
        ...row,
        value: rounded(median(buffered.map(growth))),
        better: 'higher',
        note: `the same by JSON.parse of the whole: ${told(buffered)}`,
      },
    };
  } finally {
    server.stdin.end();
  }
}

const growth = ({ growthBytes }: PageReport): number => growthBytes / MB;
const told = (reports: readonly PageReport[]): string =>
  reports.map((one) => `${growth(one).toFixed(1)} in ${(one.milliseconds / 1000).toFixed(1)} s`).join(', ');

async function measured(args: readonly string[]): Promise<PageReport> {
  const file = script('page80-process.ts');
  const child = spawn(process.execPath, ['--expose-gc', file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`bench: ${file} ended with exit code ${String(code)}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
