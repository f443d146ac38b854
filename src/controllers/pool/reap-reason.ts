import { lingers, reapTime } from '../../crds/lingering.ts';
import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';

/**
 * What the API server says of the run that a sandbox names, or of the session that it lingers for. Unknown: it could
 * not be asked. A session does not end before it is gone.
 */
export type OwnerState = 'Live' | 'Ended' | 'Gone' | 'Unknown';

export interface ReapReason {
  readonly reason:
    | 'SandboxExpired'
    | 'SandboxWithoutRun'
    | 'SandboxOfEndedRun'
    | 'SandboxWithoutSession'
    | 'SandboxEvicted';
  readonly message: string;
}

/**
 * Why a claimed sandbox must go, or one that lingers for a reply; undefined when it may stay. One that lingers outlives
 * its run, not its deadline nor its session.
 */
export function reapReason(sandbox: KubeObject, owner: OwnerState, now: Date): ReapReason | undefined {
  const { labels, annotations, deletionTimestamp } = sandbox.metadata;
  if (deletionTimestamp !== undefined || labels?.[LABELS.role] !== 'active') return undefined;
  const deadline = reapTime(sandbox);
  if (deadline <= now.getTime()) {
    return { reason: 'SandboxExpired', message: `its time was over at ${new Date(deadline).toISOString()}` };
  }
  if (lingers(sandbox) && !Number.isNaN(deadline)) {
    if (owner !== 'Gone') return undefined;
    const message = `AgentSession ${annotations?.[ANNOTATIONS.sessionId]} does not exist any more`;
    return { reason: 'SandboxWithoutSession', message };
  }
  if (labels[LABELS.run] === undefined)
    return { reason: 'SandboxWithoutRun', message: 'it is claimed but names no run' };
  const runName = annotations?.[ANNOTATIONS.runName] ?? labels[LABELS.run];
  if (owner === 'Gone')
    return { reason: 'SandboxWithoutRun', message: `AgentRun ${runName} does not exist any more` };
  if (owner === 'Ended') return { reason: 'SandboxOfEndedRun', message: `AgentRun ${runName} has ended` };
  return undefined;
}
