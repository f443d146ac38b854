import { isDeepStrictEqual } from 'node:util';
import type { AgentSession } from '../../crds/agent-session.ts';
import { SESSION_FINALIZER } from '../../crds/meta.ts';

export type SessionStep =
  | { readonly kind: 'Done' }
  | { readonly kind: 'Wait'; readonly ms: number }
  | { readonly kind: 'AddFinalizer' }
  | { readonly kind: 'DeleteArchive'; readonly lastTry: boolean }
  | { readonly kind: 'DeleteSession' }
  | {
      readonly kind: 'SetStatus';
      readonly resumable: boolean;
      readonly reason: string;
      readonly message: string;
      /** Undefined: no sandbox is kept for the session. */
      readonly lingering: Lingering | undefined;
    };

export type Lingering = NonNullable<NonNullable<AgentSession['status']>['lingering']>;

/**
 * How long the deletion of a session waits for its store. After that the finalizer goes all the same: a
 * namespace must not hang on a bucket that is down, and the bucket's own lifecycle rule takes what is left.
 */
export const ARCHIVE_PATIENCE_MS = 10 * 60_000;

/** The next step of a session. `lingering`: the sandbox that is kept for it, as the cluster shows it. Pure. */
export function decideSession(
  session: AgentSession,
  lingering: Lingering | undefined,
  now: Date,
): SessionStep {
  const { metadata, status } = session;
  const guarded = metadata.finalizers?.includes(SESSION_FINALIZER) ?? false;
  if (metadata.deletionTimestamp !== undefined) {
    if (!guarded) return { kind: 'Done' };
    const waited = now.getTime() - Date.parse(metadata.deletionTimestamp);
    return { kind: 'DeleteArchive', lastTry: waited > ARCHIVE_PATIENCE_MS };
  }
  if (!guarded) return { kind: 'AddFinalizer' };
  const leftMs = status?.expiresAt === undefined ? undefined : Date.parse(status.expiresAt) - now.getTime();
  if (leftMs !== undefined && leftMs <= 0) return { kind: 'DeleteSession' };
  const wanted =
    status?.archive === undefined
      ? {
          resumable: false,
          reason: 'NoArchive',
          message: 'No run of this session has saved its conversation yet',
        }
      : { resumable: true, reason: 'Archived', message: `A reply goes on from ${status.archive.key}` };
  const known = status?.conditions?.find((condition) => condition.type === 'Resumable');
  const told = known?.reason === wanted.reason && known.message === wanted.message;
  if (!told || !isDeepStrictEqual(status?.lingering, lingering))
    return { kind: 'SetStatus', ...wanted, lingering };
  return leftMs === undefined ? { kind: 'Done' } : { kind: 'Wait', ms: leftMs };
}
