import { z } from 'zod';
import {
  type ExecResult,
  PROBE_SUBJECTS,
  type ProbePlan,
  type ProbeResult,
  type ProbeRound,
  type Sandbox,
} from '../port.ts';
import { PROBE_SCRIPT } from './script.ts';

/** A handshake inside a cluster takes a millisecond or two; who drops packets answers never. */
const CONNECT_SECONDS = 1;
/** Neighbours on the same link. */
const LINK_LOCAL_SECONDS = 0.5;
/** The kubelet's; whichever port it is, a reset shows that the neighbour was reached. */
const LINK_LOCAL_PORTS = [10250];
/** For the exec itself and the start of python3 on a busy node. */
const MARGIN_MS = 20_000;
const MAX_OUTPUT_BYTES = 256 * 1024;

/**
 * Tries from inside the sandbox to reach what it must not reach. Rejects with `SandboxLostError` or the signal's
 * reason, as `exec` does.
 */
export async function probeEgress(
  sandbox: Pick<Sandbox, 'exec'>,
  plan: ProbePlan,
  signal?: AbortSignal,
): Promise<ProbeResult> {
  const roundMs = (CONNECT_SECONDS + LINK_LOCAL_SECONDS) * 1000 + plan.gapMs;
  const result = await sandbox.exec('exec python3 -I -S -', {
    stdin: new TextEncoder().encode(program(plan)),
    timeoutMs: plan.rounds * roundMs + MARGIN_MS,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    ...(signal === undefined ? {} : { signal }),
  });
  return read(result, plan.rounds);
}

/** A JSON text in ASCII is a Python string as well once it is quoted as JSON. */
function program({ targets, rounds, gapMs }: ProbePlan): string {
  const config = {
    ...{ targets, rounds },
    gapSeconds: gapMs / 1000,
    seconds: CONNECT_SECONDS,
    linkLocalSeconds: LINK_LOCAL_SECONDS,
    linkLocalPorts: LINK_LOCAL_PORTS,
  };
  return `import json\nCONFIG = json.loads(${JSON.stringify(JSON.stringify(config))})\n${PROBE_SCRIPT}`;
}

const Round = z
  .array(z.tuple([z.enum(PROBE_SUBJECTS), z.string().max(300), z.boolean(), z.string().max(400)]))
  .min(1)
  .max(200);

function read(result: ExecResult, rounds: number): ProbeResult {
  const stderr = lastLine(result.stderr);
  if (result.kind === 'TimedOut') return cannot(`the probe did not end within ${result.timeoutMs} ms`);
  if (result.exitCode === 127) return cannot('its image has no python3, which the probe needs');
  if (result.exitCode !== 0) return cannot(`the probe ended with exit code ${result.exitCode}: ${stderr}`);
  const found: ProbeRound[] = [];
  for (const line of new TextDecoder().decode(result.stdout).split('\n')) {
    if (line === '') continue;
    const round = Round.safeParse(parsed(line));
    if (!round.success) return cannot('the probe answered something that is no round');
    found.push(round.data.map(([subject, where, open, detail]) => ({ subject, where, open, detail })));
  }
  return found.length === rounds
    ? { kind: 'Probed', rounds: found }
    : cannot(`the probe told of ${found.length} rounds instead of ${rounds}`);
}

const cannot = (why: string): ProbeResult => ({ kind: 'CannotProbe', why });

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const lastLine = (bytes: Uint8Array): string =>
  new TextDecoder().decode(bytes).trimEnd().split('\n').at(-1)?.slice(0, 200) ?? '';
