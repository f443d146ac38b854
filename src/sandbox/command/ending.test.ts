import { describe, expect, it } from 'vitest';
import { systemClock } from '../../kube/clock.ts';
import { SandboxLostError } from '../port.ts';
import { type EndingOptions, endCommand, killCommand } from './ending.ts';

type Answer = number | 'Gone' | 'Stuck' | 'Away';

/** A sandbox whose scripts end one after the other as told; the last answer stays. */
function aSandbox(...answers: readonly Answer[]) {
  const asked: string[] = [];
  const options: EndingOptions = {
    where: 'pod a/box',
    clock: { ...systemClock, after: (_ms, action) => systemClock.after(0, action) },
    async runPlain(command) {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(command[5] ?? '');
      if (typeof answer === 'number') return answer;
      throw answer;
    },
    judge: async (error) => (error === 'Gone' || error === 'Stuck' ? error : 'Away'),
  };
  return { options, asked };
}

const aCommand = (settled: Promise<unknown> = Promise.resolve()) => {
  let cuts = 0;
  return {
    ...{ id: 'id', begunMs: 0, settled },
    cut: () => {
      cuts += 1;
    },
    cuts: () => cuts,
  };
};

const never = new Promise<never>(() => undefined);

describe('killing a command', () => {
  it.each([
    ['is done when its processes are dead', [0], 'Killed', 1],
    ['is done when the sandbox is gone', ['Gone'], 'Killed', 1],
    ['is tried once more', [1, 0], 'Killed', 2],
    ['fails when processes stay', [1, 1], 'Stuck', 2],
    ['fails when no process can be started', ['Stuck', 'Stuck'], 'Stuck', 2],
    ['is not known to have worked when nobody answers', ['Stuck', 'Away'], 'Away', 2],
  ] as const)('%s', async (_what, answers, outcome, times) => {
    const { options, asked } = aSandbox(...answers);
    expect(await killCommand(options, { id: 'id', begunMs: 0 })).toBe(outcome);
    expect(asked).toEqual(Array.from({ length: times }, () => 'KILL'));
  });
});

describe('ending a command', () => {
  it('asks it first when there is time for that', async () => {
    const { options, asked } = aSandbox(0);
    await endCommand(options, aCommand(), { polite: true });
    expect(asked).toEqual(['TERM', 'KILL']);
  });

  it('kills it at once when nobody waits for its output', async () => {
    const { options, asked } = aSandbox(0);
    await endCommand(options, aCommand(), { polite: false });
    expect(asked).toEqual(['KILL']);
  });

  it('cuts a connection that does not end, and kills what began only then', async () => {
    const { options, asked } = aSandbox(0);
    const command = aCommand(never);
    await endCommand(options, command, { polite: false });
    expect(asked).toEqual(['KILL', 'KILL']);
    expect(command.cuts()).toBe(1);
  });

  it('gives the sandbox up when its processes stay', async () => {
    const { options } = aSandbox(1);
    await expect(endCommand(options, aCommand(), { polite: false })).rejects.toThrow(SandboxLostError);
  });

  it('does not give it up because the API server is away', async () => {
    const { options } = aSandbox('Away');
    await endCommand(options, aCommand(), { polite: false });
  });
});
