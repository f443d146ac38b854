import { describe, expect, it } from 'vitest';
import type { ExecResult, ProbePlan, Sandbox } from '../port.ts';
import { probeEgress } from './probe.ts';

const PLAN: ProbePlan = { targets: [], rounds: 1, gapMs: 0 };
const bytes = (text: string) => new TextEncoder().encode(text);
const output = (stdout: string, stderr = '') => ({
  ...{ stdout: bytes(stdout), stderr: bytes(stderr) },
  stdoutBytes: stdout.length,
  stderrBytes: stderr.length,
});
const answering = (result: ExecResult): Pick<Sandbox, 'exec'> => ({ exec: () => Promise.resolve(result) });
const exited = (exitCode: number, stdout: string, stderr = '') =>
  answering({ kind: 'Exited', exitCode, ...output(stdout, stderr) });

const ROUND = '[["Kubelet","10.0.0.1:10250/tcp",false,"no answer"]]';

describe('the answer of a probe', () => {
  it('is one round for each line', async () => {
    const result = await probeEgress(exited(0, `${ROUND}\n${ROUND}\n`), { ...PLAN, rounds: 2 });
    const finding = { subject: 'Kubelet', where: '10.0.0.1:10250/tcp', open: false, detail: 'no answer' };
    expect(result).toEqual({ kind: 'Probed', rounds: [[finding], [finding]] });
  });

  it.each<[string, Pick<Sandbox, 'exec'>, RegExp]>([
    ['there is no python3', exited(127, '', 'sh: python3: not found'), /no python3/],
    ['the script fails', exited(1, '', 'Traceback\nOSError: x'), /exit code 1: OSError: x/],
    ['a round is missing', exited(0, ''), /0 rounds instead of 1/],
    ['a line is no JSON', exited(0, 'hello\n'), /no round/],
    ['a round is empty', exited(0, '[]\n'), /no round/],
    ['a subject is unknown', exited(0, '[["Mars","x",false,"y"]]\n'), /no round/],
    [
      'it does not end',
      answering({ kind: 'TimedOut', timeoutMs: 20_000, ...output(`${ROUND}\n`) }),
      /did not end within 20000 ms/,
    ],
  ])('proves nothing when %s', async (_, sandbox, why) => {
    const result = await probeEgress(sandbox, PLAN);
    expect(result).toEqual({ kind: 'CannotProbe', why: expect.stringMatching(why) });
  });
});
