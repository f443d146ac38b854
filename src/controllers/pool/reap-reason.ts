import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';

/** What the API server says of the run that a pod names. Unknown: it could not be asked. */
export type RunState = 'Live' | 'Ended' | 'Gone' | 'Unknown';

export interface ReapReason {
  readonly reason: 'SandboxExpired' | 'SandboxWithoutRun' | 'SandboxOfEndedRun';
  readonly message: string;
}

/** Why a claimed pod must go, undefined when it may stay. A lingering one outlives its run until its deadline. */
export function reapReason(pod: KubeObject, run: RunState, now: Date): ReapReason | undefined {
  const { labels, annotations, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined || labels?.[LABELS.role] !== 'active') return undefined;
  const deadline = Date.parse(annotations?.[ANNOTATIONS.reapBy] ?? '');
  if (deadline <= now.getTime()) {
    return { reason: 'SandboxExpired', message: `its time was over at ${new Date(deadline).toISOString()}` };
  }
  const lingers = annotations?.[ANNOTATIONS.sessionId] !== undefined;
  if (lingers && !Number.isNaN(deadline)) return undefined;
  if (labels[LABELS.run] === undefined)
    return { reason: 'SandboxWithoutRun', message: 'it is claimed but names no run' };
  const runName = annotations?.[ANNOTATIONS.runName] ?? labels[LABELS.run];
  if (run === 'Gone')
    return { reason: 'SandboxWithoutRun', message: `AgentRun ${runName} does not exist any more` };
  if (run === 'Ended') return { reason: 'SandboxOfEndedRun', message: `AgentRun ${runName} has ended` };
  return undefined;
}
