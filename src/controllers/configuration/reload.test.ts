import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { ManualClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/errors.ts';
import { silentLogger } from '../../kube/log.ts';
import type { KubeClient, ObjectRef, Patch } from '../../kube/port.ts';
import { isFromFile } from './decide.ts';
import { createTurn, type FileReading } from './reload.ts';

/** The API server with one namespace of workflows, and a file. */
function world(...there: readonly AgentWorkflow[]) {
  const stored = new Map(there.map((workflow) => [workflow.metadata.name ?? '', workflow]));
  let readings: readonly FileReading[] = [];
  let refusing = false;
  let problem: string | undefined;
  const said: string[] = [];
  const busy = new Set<string>();
  let uids = 0;
  const kube = {
    get: async (_: unknown, { name }: ObjectRef) => stored.get(name),
    patch: async (_: unknown, { name }: ObjectRef, { type, body }: Patch) => {
      if (refusing)
        throw new KubeError({ reason: 'Invalid', message: 'spec.model is wrong', where: 'patch' });
      const before = stored.get(name);
      const given = body as AgentWorkflow; // what the code under test sends
      const spec = type === 'merge' && before !== undefined ? { ...before.spec, ...given.spec } : given.spec;
      const changed = JSON.stringify(spec) !== JSON.stringify(before?.spec);
      const { uid = `u-${++uids}`, generation = 0, labels } = before?.metadata ?? {};
      const metadata = { name, uid, generation: generation + (changed ? 1 : 0) };
      const after = {
        ...aWorkflow(spec),
        metadata: { ...metadata, labels: labels ?? given.metadata.labels ?? {} },
      };
      stored.set(name, after);
      said.push(`${type} ${name}`);
      return after;
    },
    delete: async (_: unknown, { name }: ObjectRef, { uid }: { uid?: string }) => {
      said.push(`delete ${name}`);
      return stored.get(name)?.metadata.uid === uid && stored.delete(name);
    },
  } as unknown as KubeClient; // the methods that a turn uses
  const turn = createTurn(
    {
      kube,
      events: {
        record: ({ metadata }, _, reason, message) => said.push(`${reason} ${metadata.name}: ${message}`),
        flush: async () => undefined,
      },
      clock: new ManualClock(),
      log: { ...silentLogger, error: (_, message) => said.push(message) },
      metrics: {
        reloaded: (outcome) => said.push(outcome),
        faults: () => undefined,
        leftAlone: (count) => count > 0 && said.push(`left alone: ${count}`),
      },
      path: 'hummingbird.yaml',
      read: async () => {
        const [first, ...rest] = readings;
        if (first === undefined) throw new Error('this test gives no file');
        if (rest.length > 0) readings = rest;
        return first;
      },
      workflows: () => [...stored.values()],
      isBusy: (name) => busy.has(name),
    },
    (found) => {
      problem = found;
    },
  );
  return {
    stored,
    busy,
    problem: () => problem,
    refuse: (on: boolean) => {
      refusing = on;
    },
    /** What a look at the file does; several readings come one after the other. */
    async look(...given: readonly FileReading[]): Promise<readonly string[]> {
      readings = given;
      said.length = 0;
      await turn(new AbortController().signal);
      return [...said];
    },
  };
}

const file = (...names: readonly string[]): FileReading => ({
  kind: 'Good',
  workflows: names.map((name) => aWorkflow({ prompt: { text: name } }, { name, labels: {} })),
});
const faulty: FileReading = { kind: 'Faulty', faults: ['hummingbird.yaml:3:5: settings: no', 'another'] };
const generations = ({ stored }: ReturnType<typeof world>) =>
  Object.fromEntries([...stored.values()].map(({ metadata }) => [metadata.name, metadata.generation]));

describe('a look at the configuration file', () => {
  it('makes its workflows, with the label that says so, and does nothing more while nothing changes', async () => {
    const one = world();
    const applied = 'Generation 1 is what hummingbird.yaml says';
    expect(await one.look(file('a', 'b'))).toEqual([
      ...['apply a', `AppliedFromFile a: ${applied}`, 'apply b', `AppliedFromFile b: ${applied}`, 'applied'],
    ]);
    expect([...one.stored.values()].every(isFromFile)).toBe(true);
    expect(await one.look(file('a', 'b'))).toEqual([]);
  });

  it('changes nothing for a faulty file, and says so once: every fault, on every workflow from the file', async () => {
    const one = world(aWorkflow({}, { name: 'own' }));
    await one.look(file('a'));
    expect(await one.look(faulty)).toEqual([
      'faulty',
      'hummingbird.yaml:3:5: settings: no',
      'another',
      'ConfigurationFaulty a: hummingbird.yaml:3:5: settings: no and 1 more. The workflows stay as they were until the file is mended',
    ]);
    expect(one.problem()).toBe('hummingbird.yaml has 2 fault(s): hummingbird.yaml:3:5: settings: no');
    expect(await one.look(faulty)).toEqual([]);
    expect(generations(one)).toEqual({ own: 1, a: 1 });
    expect(await one.look(file('a'))).toEqual(['applied']);
    expect(one.problem()).toBeUndefined();
  });

  it('keeps the last good file in force while the file is faulty', async () => {
    const one = world();
    await one.look(file('a'));
    await one.look(faulty);
    one.stored.clear();
    expect(await one.look(faulty)).toContain('apply a');
  });

  it('deletes nothing for a file that was faulty from the start', async () => {
    const before = world();
    await before.look(file('a'));
    const one = world(...before.stored.values());
    await one.look(faulty);
    expect([...one.stored.keys()]).toEqual(['a']);
  });

  it('waits when two readings differ: the file, or a prompt, is being replaced', async () => {
    const one = world();
    expect(await one.look(file('a'), file('b'))).toEqual([]);
    expect([...one.stored.keys()]).toEqual([]);
    await one.look(file('b'));
    expect([...one.stored.keys()]).toEqual(['b']);
  });

  it('leaves a workflow of the same name alone that was not made from the file, and reports it once', async () => {
    const one = world(aWorkflow({}, { name: 'a' }));
    expect(await one.look(file('a'))).toEqual([
      'left alone: 1',
      expect.stringContaining(
        'NotFromFile a: hummingbird.yaml names a workflow a, but this one was not made',
      ),
      'applied',
    ]);
    expect(await one.look(file('a'))).toEqual(['left alone: 1']);
    expect(one.stored.get('a')?.spec.prompt).toEqual({ text: 'Look.' });
  });

  it('deletes what vanished from the file, once no run goes on with it, and nothing else', async () => {
    const one = world(aWorkflow({}, { name: 'own' }));
    await one.look(file('a', 'b'));
    one.busy.add('b');
    expect(await one.look(file('a'))).toEqual([expect.stringContaining('NotInFile b'), 'merge b', 'applied']);
    expect(one.stored.get('b')?.spec.suspend).toBe(true);
    expect(await one.look(file('a'))).toEqual([]);
    one.busy.clear();
    expect(await one.look(file('a'))).toEqual(['delete b']);
    expect([...one.stored.keys()]).toEqual(['own', 'a']);
  });

  it('takes up a workflow again that comes back into the file', async () => {
    const one = world();
    await one.look(file('a', 'b'));
    one.busy.add('b');
    await one.look(file('a'));
    await one.look(file('a', 'b'));
    expect(one.stored.get('b')?.spec.suspend).toBe(false);
  });

  it('tries again what the API server refuses, says why once, and counts when it went well', async () => {
    const one = world();
    one.refuse(true);
    const first = await one.look(file('a'));
    expect(first).toEqual([expect.stringMatching(/^Apply of a workflow .* failed/), 'failed']);
    expect(await one.look(file('a'))).toEqual([]);
    expect(one.problem()).toMatch(/^Apply of workflow a of hummingbird\.yaml failed: .*spec\.model is wrong/);
    one.refuse(false);
    expect(await one.look(file('a'))).toEqual([
      'apply a',
      expect.stringContaining('AppliedFromFile'),
      'applied',
    ]);
    expect(one.problem()).toBeUndefined();
  });
});
