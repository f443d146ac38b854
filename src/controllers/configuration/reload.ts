import { createHash } from 'node:crypto';
import { AGENT_WORKFLOWS, type AgentWorkflow } from '../../crds/agent-workflow.ts';
import { applyObject } from '../../kube/apply.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { EventRecorder, KubeClient } from '../../kube/port.ts';
import {
  type Applied,
  type ConfigurationAction,
  decideConfiguration,
  FROM_FILE,
  isFromFile,
  type WantedWorkflow,
} from './decide.ts';
import type { ConfigurationMetrics } from './metrics.ts';

/** The file as it stands, with the prompts that it names. */
export type FileReading =
  | { readonly kind: 'Good'; readonly workflows: readonly AgentWorkflow[] }
  /** One line for each fault, with its place. */
  | { readonly kind: 'Faulty'; readonly faults: readonly string[] };

export interface ConfigurationDeps {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ConfigurationMetrics;
  /** For people. */
  readonly path: string;
  read(): Promise<FileReading>;
  /** Every workflow of the namespace; may be stale. */
  workflows(): readonly AgentWorkflow[];
  /** Whether runs of the workflow are under way. */
  isBusy(workflow: string): boolean;
}

export interface ConfigurationReload {
  /** Until the signal is aborted; never rejects. By one replica at a time. */
  run(signal: AbortSignal): Promise<void>;
  /** What is wrong with the file; undefined while nothing is, or while another replica looks at it. */
  problem(): string | undefined;
}

export const CONFIGURATION_FIELD_MANAGER = 'hummingbird-configuration';

const POLL_MS = 10_000;

/**
 * Keeps the workflows of the namespace as the configuration file says. The file is read again and again, so that it
 * does not matter how it is replaced; a faulty one changes nothing.
 */
export function createConfigurationReload(deps: ConfigurationDeps): ConfigurationReload {
  let problem: string | undefined;
  return {
    async run(signal) {
      const turn = createTurn(deps, (found) => {
        problem = found;
      });
      while (!signal.aborted) {
        await turn(signal).catch((error: unknown) => {
          if (!signal.aborted)
            deps.log.error(errorFields(error), 'the configuration file could not be looked at');
        });
        await sleep(deps.clock, POLL_MS, signal);
      }
      problem = undefined;
      deps.metrics.faults(0);
      deps.metrics.leftAlone(0);
    },
    problem: () => problem,
  };
}

/** One look at the file. What was applied before this replica led is applied again, which changes nothing. */
export function createTurn(
  deps: ConfigurationDeps,
  onProblem: (problem: string | undefined) => void,
): (signal: AbortSignal) => Promise<void> {
  let seen: string | undefined;
  let wanted: readonly WantedWorkflow[] | undefined;
  let isApplied = false;
  const applied = new Map<string, Applied>();
  const told = new Set<string>();
  /** Once for each state of the file. */
  const once = (what: string, tell: () => void): void => {
    if (told.has(what)) return;
    told.add(what);
    tell();
  };

  return async (signal) => {
    const reading = await deps.read();
    const digest = digestOf(reading);
    const isNew = digest !== seen;
    // A file and its prompts that are being replaced give two different readings; the next look finds them whole.
    if (isNew && digestOf(await deps.read()) !== digest) return;
    seen = digest;
    if (isNew) told.clear();
    const faults = reading.kind === 'Faulty' ? reading.faults : [];
    deps.metrics.faults(faults.length);
    const faulty =
      faults.length === 0 ? undefined : `${deps.path} has ${faults.length} fault(s): ${faults[0]}`;
    onProblem(faulty);
    if (reading.kind === 'Good') wanted = reading.workflows.map(asWanted);
    else if (isNew) tellFaults(deps, reading.faults);
    if (wanted === undefined) return;
    if (isNew) isApplied = false;
    const failure = await reconcile(wanted, signal);
    const failed = failure !== undefined;
    onProblem(faulty ?? failure);
    if (reading.kind === 'Faulty' || isApplied) return;
    isApplied = !failed;
    if (failed && !isNew) return;
    deps.metrics.reloaded(failed ? 'failed' : 'applied');
    deps.log.info({ file: deps.path, workflows: wanted.length, failed }, 'configuration file read');
  };

  /** Says what could not be done; it comes again with the next look. */
  async function reconcile(
    said: readonly WantedWorkflow[],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const present = deps.workflows();
    const busy = new Set(present.flatMap(({ metadata: { name = '' } }) => (deps.isBusy(name) ? [name] : [])));
    const actions = decideConfiguration({ wanted: said, present, applied, busy });
    deps.metrics.leftAlone(actions.filter(({ kind }) => kind === 'LeaveAlone').length);
    let failure: string | undefined;
    for (const action of actions) {
      signal.throwIfAborted();
      try {
        await act(action, signal);
      } catch (error) {
        signal.throwIfAborted();
        const name = nameOf(action);
        const message = error instanceof Error ? error.message : String(error);
        failure ??= `${action.kind} of workflow ${name} of ${deps.path} failed: ${message}`;
        once(`${name} ${message}`, () =>
          deps.log.error(
            { workflow: name, ...errorFields(error) },
            `${action.kind} of a workflow of the configuration file failed; it is tried again`,
          ),
        );
      }
    }
    return failure;
  }

  async function act(action: ConfigurationAction, signal: AbortSignal): Promise<void> {
    const { kube, events, log, path } = deps;
    switch (action.kind) {
      case 'Apply':
        return apply(action.wanted, signal);
      case 'LeaveAlone': {
        const message = `${path} names a workflow ${nameOf(action)}, but this one was not made from it and stays as it is: rename one of them, or delete this one`;
        return once(message, () => {
          log.warn({ workflow: nameOf(action) }, message);
          events.record(action.workflow, 'Warning', 'NotFromFile', message);
        });
      }
      case 'Suspend': {
        const message = `${path} does not name this workflow any more: it is deleted when its runs have ended`;
        log.info({ workflow: nameOf(action) }, message);
        events.record(action.workflow, 'Normal', 'NotInFile', message);
        await kube.patch(
          AGENT_WORKFLOWS,
          refOf(action.workflow),
          { type: 'merge', body: { spec: { suspend: true } } },
          { signal },
        );
        return;
      }
      case 'Delete': {
        const { uid, resourceVersion } = action.workflow.metadata;
        // With its version: one that was taken out of the file's hands meanwhile stays.
        await kube.delete(AGENT_WORKFLOWS, refOf(action.workflow), {
          ...(uid !== undefined && { uid }),
          ...(resourceVersion !== undefined && { resourceVersion }),
          signal,
        });
        applied.delete(nameOf(action));
        log.info({ workflow: nameOf(action) }, `${path} does not name this workflow any more: deleted`);
        return;
      }
      default:
        return action satisfies never;
    }
  }

  async function apply({ workflow, digest }: WantedWorkflow, signal: AbortSignal): Promise<void> {
    // The cache may not know it yet: an authoritative look before fields of somebody else are taken over.
    const there = await deps.kube.get(AGENT_WORKFLOWS, refOf(workflow), { signal });
    if (there !== undefined && !isFromFile(there))
      return act({ kind: 'LeaveAlone', workflow: there }, signal);
    const after = await applyObject(deps.kube, AGENT_WORKFLOWS, workflow, {
      fieldManager: CONFIGURATION_FIELD_MANAGER,
      signal,
    });
    const { name = '', uid, generation = 0 } = after.metadata;
    applied.set(name, { digest, uid, generation });
    if (generation === there?.metadata.generation) return;
    deps.log.info({ workflow: name, generation }, 'applied from the configuration file');
    deps.events.record(
      after,
      'Normal',
      'AppliedFromFile',
      `Generation ${generation} is what ${deps.path} says`,
    );
  }
}

function tellFaults(
  { log, metrics, events, path, workflows }: ConfigurationDeps,
  faults: readonly string[],
): void {
  metrics.reloaded('faulty');
  for (const fault of faults) log.error({ file: path }, fault);
  const more = faults.length > 1 ? ` and ${faults.length - 1} more` : '';
  const message = `${faults[0]}${more}. The workflows stay as they were until the file is mended`;
  for (const workflow of workflows().filter(isFromFile))
    events.record(workflow, 'Warning', 'ConfigurationFaulty', message);
}

const asWanted = (workflow: AgentWorkflow): WantedWorkflow => {
  const labels = { ...workflow.metadata.labels, ...FROM_FILE };
  const labelled = { ...workflow, metadata: { ...workflow.metadata, labels } };
  return { workflow: labelled, digest: digestOf(labelled) };
};

const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url');

const refOf = ({ metadata: { name = '', namespace } }: AgentWorkflow) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
});

const nameOf = (action: ConfigurationAction): string =>
  (action.kind === 'Apply' ? action.wanted.workflow : action.workflow).metadata.name ?? '';
