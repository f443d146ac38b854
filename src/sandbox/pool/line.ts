import type { Clock } from '../../kube/clock.ts';
import type { SandboxRequest } from '../port.ts';

/** Runs that wait for a pool, in the order in which they first asked this process. */
export interface WaitingLine {
  /** Runs of the same pool that asked earlier and still ask; for one that does not wait: all of them. */
  ahead(request: SandboxRequest): number;
  /** Joins, or says that it still waits. Returns the milliseconds since it joined. */
  wait(request: SandboxRequest): number;
  waits(request: SandboxRequest): boolean;
  leave(runUid: string): void;
}

/**
 * A run that has not asked for so long has gone (cancelled, taken over by another replica) and keeps nobody
 * waiting. Several times the interval at which a waiting run asks again.
 */
const FORGOTTEN_MS = 3_000;

export function waitingLine(clock: Clock): WaitingLine {
  // A Map keeps the order of insertion, which is the order of the line.
  const entries = new Map<string, { readonly pool: string; readonly since: number; asked: number }>();

  const forget = () => {
    for (const [uid, { asked }] of entries)
      if (clock.monotonicMs() - asked > FORGOTTEN_MS) entries.delete(uid);
  };

  return {
    ahead(request) {
      forget();
      let ahead = 0;
      for (const [uid, { pool }] of entries) {
        if (uid === request.runUid) break;
        if (pool === poolKey(request)) ahead++;
      }
      return ahead;
    },
    wait(request) {
      const now = clock.monotonicMs();
      const entry = entries.get(request.runUid);
      if (entry === undefined) {
        entries.set(request.runUid, { pool: poolKey(request), since: now, asked: now });
        return 0;
      }
      entry.asked = now;
      return now - entry.since;
    },
    waits(request) {
      forget();
      return entries.has(request.runUid);
    },
    leave: (runUid) => void entries.delete(runUid),
  };
}

const poolKey = ({ pool }: SandboxRequest) => `${pool.namespace}/${pool.name}`;
