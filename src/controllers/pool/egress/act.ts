import { ANNOTATIONS } from '../../../crds/meta.ts';
import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import { isKubeError } from '../../../kube/errors.ts';
import type { EventRecorder, KubeClient } from '../../../kube/port.ts';
import type { EgressAction } from './ledger.ts';
import { type Probeable, refOf } from './probeable.ts';
import { inWords } from './words.ts';

export interface EgressActors {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
}

/** Does one action; doing it again changes nothing, and a sandbox that is gone is no error. Throws KubeError. */
export async function actOn(
  { kube, events }: EgressActors,
  pool: SandboxPool,
  action: EgressAction,
  now: Date,
): Promise<void> {
  const { sandbox } = action;
  switch (action.kind) {
    case 'Prove': {
      const until = action.until.toISOString();
      await annotate(kube, sandbox, {
        [ANNOTATIONS.egressBlockedUntil]: until,
        [ANNOTATIONS.egressProbe]: null,
      });
      return;
    }
    case 'Withdraw':
      await annotate(kube, sandbox, { [ANNOTATIONS.egressBlockedUntil]: null });
      return;
    case 'MarkOpen': {
      const found = inWords(action.finding);
      await annotate(kube, sandbox, {
        [ANNOTATIONS.egressBlockedUntil]: null,
        [ANNOTATIONS.egressOpen]: `${now.toISOString()} ${found}`,
      });
      events.record(pool, 'Warning', 'EgressOpen', `${refOf(sandbox).name} is not isolated: ${found}`);
      return;
    }
    case 'Replace': {
      const { uid = '', resourceVersion = '' } = sandbox.object.metadata;
      const deleted = await unlessChanged(
        kube.delete(sandbox.kind, refOf(sandbox), { uid, resourceVersion }),
      );
      if (deleted === true) events.record(sandbox.object, 'Normal', 'OpenSandboxReplaced', action.reason);
      return;
    }
    default:
      return action satisfies never;
  }
}

/** Sandboxes that stood by before the pool had a probe can no longer be handed out without one. Throws KubeError. */
export const requireProof = (kube: KubeClient, sandbox: Probeable): Promise<void> =>
  annotate(kube, sandbox, { [ANNOTATIONS.egressProbe]: null });

/** With the uid, so that another one of the same name never gets the mark. */
async function annotate(
  kube: KubeClient,
  sandbox: Probeable,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  const { uid } = sandbox.object.metadata;
  await unlessChanged(
    kube.patch(sandbox.kind, refOf(sandbox), { type: 'merge', body: { metadata: { uid, annotations } } }),
  );
}

async function unlessChanged<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isKubeError(error, 'Conflict', 'NotFound')) return undefined;
    throw error;
  }
}
