import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ensurePodman } from '../hack/podman/podman.ts';
import type { BytesReport, Passage } from './gitlab-bytes-process.ts';
import type { BytesServer } from './gitlab-bytes-server.ts';
import { median, type Rows, rounded } from './row.ts';

const RUNS = 3;
const MB = 1_000_000;
const ARCHIVE_BYTES = 1024 ** 3;
const LOG_BYTES = 500 * MB;

/** The two largest things that GitLab has, through their tools into a Podman sandbox: memory, and time against curl. */
export async function gitlabBytesBench(): Promise<Rows> {
  const image = await ensurePodman((line) => console.error(line));
  const server = await startServer();
  try {
    const { url, token, sha, jobId } = server.at;
    const report = await measured([url, token, sha, String(jobId), image, String(RUNS)]);
    const [archive, log] = [ratioOf(report.archive), ratioOf(report.log)];
    return {
      'archive1g.rss.mb': growth(report.archive, '1 GiB', ARCHIVE_BYTES),
      'joblog500.rss.mb': growth(report.log, '500 MB', LOG_BYTES),
      'curl.ratio': {
        value: rounded(Math.max(archive, log)),
        goal: 1.5,
        better: 'lower',
        unit: 'x curl',
        runs: RUNS,
        note: `the worse of archive ${rounded(archive)} and job log ${rounded(log)}, curl into podman exec`,
      },
    };
  } finally {
    server.stop();
  }
}

function growth(passages: readonly Passage[], what: string, bytes: number) {
  const grown = passages.map(({ growthBytes }) => growthBytes / MB);
  const seconds = median(passages.map(({ milliseconds }) => milliseconds)) / 1000;
  const spread = grown.map((value) => value.toFixed(1)).join(', ');
  return {
    value: rounded(median(grown)),
    goal: 32,
    better: 'lower' as const,
    unit: 'MB',
    runs: RUNS,
    note: `${what} at ${rounded(bytes / MB / seconds)} MB/s: ${spread}`,
  };
}

const ratioOf = (passages: readonly Passage[]): number =>
  median(passages.map(({ milliseconds, curlMilliseconds }) => milliseconds / curlMilliseconds));

async function startServer(): Promise<{ readonly at: BytesServer; stop(): void }> {
  const child = spawn(
    process.execPath,
    [scriptNamed('gitlab-bytes-server.ts'), String(ARCHIVE_BYTES), String(LOG_BYTES)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  for await (const line of createInterface(child.stdout)) {
    return { at: JSON.parse(line), stop: () => child.kill() };
  }
  throw new Error('bench: the stand-in of GitLab ended before it said where it is');
}

async function measured(args: readonly string[]): Promise<BytesReport> {
  const script = scriptNamed('gitlab-bytes-process.ts');
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`bench: ${script} ended with exit code ${String(code)}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const scriptNamed = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
