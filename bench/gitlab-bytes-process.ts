// A process of its own, so that what its memory shows is the tools': an archive and a job log from GitLab's stand-in go
// through the tools into a file of a Podman sandbox, and beside that the same bytes by curl and `podman exec`.
// Arguments: url token sha jobId image runs. Prints one JSON object.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRegistry } from '../src/agent/tools/registry.ts';
import { createHttpClient } from '../src/http/client.ts';
import { silentLogger } from '../src/kube/log.ts';
import { podmanSandbox } from '../src/sandbox/podman/podman.ts';
import { SCRATCH } from '../src/sandbox/port.ts';
import { toolToken } from '../src/settings/tokens.ts';
import { gitlabTools } from '../src/sources/gitlab/tools.ts';

export interface BytesReport {
  readonly archive: readonly Passage[];
  readonly log: readonly Passage[];
}

export interface Passage {
  /** Highest growth of RSS over what the process had after it had read 100 MB. */
  readonly growthBytes: number;
  readonly milliseconds: number;
  readonly curlMilliseconds: number;
}

const PROJECT = 'group/app';
const TIMEOUT_MS = 600_000;

const [url = '', token = '', sha = '', jobId = '', image = '', runs = '1'] = process.argv.slice(2);
const http = createHttpClient();
const source = { http, baseUrl: url, token: toolToken(token) };
const sandbox = podmanSandbox({
  ...{ image, env: process.env, logger: silentLogger },
  // The archive lies in /tmp, which is memory.
  limits: { memory: '4g', processes: 1024, tmp: '3g' },
});
try {
  await sandbox.start();
  const tools = gitlabTools(source, { project: PROJECT, iid: 1, sha });
  const registry = createRegistry({ sandbox, tools });
  const call = async (name: string, args: Readonly<Record<string, unknown>>): Promise<void> => {
    const asked = { id: 'c', name, arguments: args, rawArguments: JSON.stringify(args) };
    const { result } = await registry.execute(asked, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (typeof result['saved_to'] !== 'string' || 'incomplete' in result)
      throw new Error(`bench: ${JSON.stringify(result).slice(0, 500)}`);
  };
  const path = `projects/${encodeURIComponent(PROJECT)}`;
  const report: BytesReport = {
    archive: await passages(
      () => call('gitlab_get_repo_archive', { project: PROJECT, ref: sha }),
      `${path}/repository/archive.tar.gz?sha=${sha}`,
    ),
    log: await passages(
      () => call('gitlab_get_job_log', { project: PROJECT, job_id: Number(jobId) }),
      `${path}/jobs/${jobId}/trace`,
    ),
  };
  console.log(JSON.stringify(report));
} finally {
  await sandbox.cleanup();
  await http.close();
}

async function passages(read: () => Promise<void>, path: string): Promise<readonly Passage[]> {
  await read();
  await emptied();
  const all: Passage[] = [];
  for (let run = 0; run < Number(runs); run += 1) {
    const watched = await watchedMemory(read);
    await emptied();
    const begun = performance.now();
    await curl(path);
    all.push({ ...watched, curlMilliseconds: performance.now() - begun });
    await emptied();
  }
  return all;
}

async function watchedMemory(read: () => Promise<void>) {
  const before = process.memoryUsage.rss();
  let highest = before;
  const sampler = setInterval(() => {
    highest = Math.max(highest, process.memoryUsage.rss());
  }, 10);
  const begun = performance.now();
  await read();
  const milliseconds = performance.now() - begun;
  clearInterval(sampler);
  return { growthBytes: highest - before, milliseconds };
}

async function emptied(): Promise<void> {
  const { kind } = await sandbox.exec(`rm -rf ${SCRATCH}/_out ${SCRATCH}/curl`);
  if (kind !== 'Exited') throw new Error(`bench: the sandbox could not be emptied: ${kind}`);
}

/** As anybody would bring the bytes to the same place by hand. */
async function curl(path: string): Promise<void> {
  const script = `set -o pipefail; curl -sSf -H "private-token: $1" "$2" | podman exec -i "$3" sh -c 'cat >${SCRATCH}/curl'`;
  const words = ['-c', script, 'curl', token, `${url}/api/v4/${path}`, sandbox.ref.name];
  const [code] = await once(spawn('bash', words, { stdio: ['ignore', 'inherit', 'inherit'] }), 'close');
  if (code !== 0) throw new Error(`bench: curl into the sandbox ended with exit code ${String(code)}`);
}
