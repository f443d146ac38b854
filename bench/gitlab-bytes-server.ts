// GitLab's stand-in as a process of its own: an archive and a job log of any size, made while they are sent. The first
// time each of them is asked for it has 100 MB. Arguments: bytes of the archive, bytes of the log. Prints one JSON object.
import { aScene } from '../test/fakes/gitlab/scene.ts';

export interface BytesServer {
  readonly url: string;
  readonly token: string;
  readonly sha: string;
  readonly jobId: number;
}

const WARM_UP_BYTES = 100_000_000;
const BLOCK = 64 * 1024;

const [archiveBytes = 0, logBytes = 0] = process.argv.slice(2).map(Number);
const { gitlab, state, project, mergeRequest, users } = await aScene();
project.archive = growing(
  Buffer.from(Array.from({ length: BLOCK }, (_, at) => (at * 7919) % 251)),
  archiveBytes,
);
const pipeline = state.pipeline(project, { user: users.ada, mergeRequest });
const job = state.job(pipeline, { name: 'unit', trace: growing(Buffer.from(logLines()), logBytes) });
const { token } = state.projectBot(project, { scopes: ['read_api'], level: 20 });
const server: BytesServer = { url: gitlab.url, token, sha: mergeRequest.sha, jobId: job.id };
console.log(JSON.stringify(server));

function growing(block: Buffer, bytes: number): () => Iterable<Uint8Array> {
  let asked = 0;
  return () => {
    asked += 1;
    return repeated(block, asked === 1 ? WARM_UP_BYTES : bytes);
  };
}

function* repeated(block: Buffer, bytes: number): Generator<Uint8Array> {
  for (let left = bytes; left > 0; left -= block.length) yield block.subarray(0, left);
}

/** As runners write it: a time before each line, sections, colours, and some words beyond ASCII. */
function logLines(): string {
  let text = '';
  for (let line = 0; text.length < BLOCK; line++) {
    const time = `2026-11-30T08:00:${String(line % 60).padStart(2, '0')}.123456Z 00`;
    if (line % 200 === 0) text += `${time}O section_start:1700000000:step_${line}\r\u001b[0K`;
    const words =
      line % 10 === 0
        ? `\u001b[32;1m$ make test-${line}\u001b[0;m`
        : `  ok ${line} - keeps what it was given, très vite`;
    text += `${time}${line % 7 === 0 ? 'E' : 'O'} ${words}\n`;
  }
  return text;
}
