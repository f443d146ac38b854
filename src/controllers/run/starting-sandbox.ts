import { type Sandbox, SandboxLostError } from '../../sandbox/port.ts';

/**
 * A sandbox that is being made ready while the run goes on: the model is asked meanwhile, and whatever uses the
 * sandbox waits for it. One that does not start is a lost one: whoever uses it gets another, as after any loss.
 */
export function startingSandbox(sandbox: Sandbox, signal: AbortSignal): Sandbox {
  const ready = sandbox.start(signal).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new SandboxLostError(`sandbox ${sandbox.ref.name} did not start: ${why}`, { cause });
  });
  // Nobody may ever use it.
  ready.catch(() => undefined);
  return {
    ref: sandbox.ref,
    start: () => ready,
    exec: async (...args) => {
      await ready;
      return sandbox.exec(...args);
    },
    writeFile: async (...args) => {
      await ready;
      return sandbox.writeFile(...args);
    },
    streamToFile: async (...args) => {
      await ready;
      return sandbox.streamToFile(...args);
    },
    streamExec: async (...args) => {
      await ready;
      return sandbox.streamExec(...args);
    },
    async *readFile(...args) {
      await ready;
      yield* sandbox.readFile(...args);
    },
    cleanup: () => sandbox.cleanup(),
    linger: (sessionId) => sandbox.linger(sessionId),
  };
}
