/** Lets in so many at once; the others wait in the order in which they came. */
export interface SessionLimit {
  /** Resolves with the function that leaves. Rejects with the signal's reason. */
  enter(signal?: AbortSignal): Promise<() => void>;
}

export function sessionLimit(max: number): SessionLimit {
  let inside = 0;
  const waiting: (() => void)[] = [];
  const leaveOnce = () => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = waiting.shift();
      if (next === undefined) inside--;
      else next();
    };
  };
  return {
    async enter(signal) {
      signal?.throwIfAborted();
      if (inside < max) {
        inside++;
        return leaveOnce();
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAbort = () => {
        waiting.splice(waiting.indexOf(resolve), 1);
        reject(signal?.reason);
      };
      waiting.push(resolve);
      signal?.addEventListener('abort', onAbort, { once: true });
      try {
        await promise;
      } finally {
        signal?.removeEventListener('abort', onAbort);
      }
      return leaveOnce();
    },
  };
}
