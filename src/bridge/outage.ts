import { AGENT_RUNS } from '../crds/agent-run.ts';
import { backoffMs, type Clock, type Random, sleep } from '../kube/clock.ts';
import { isKubeError } from '../kube/errors.ts';
import { errorFields, type Logger } from '../kube/log.ts';
import type { KubeClient } from '../kube/port.ts';

export interface OutageDependencies {
  readonly kube: KubeClient;
  /** Where the API server is asked whether it answers again. */
  readonly namespace: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * While the API server does not answer, every receive would only bring a message nearer to its dead-letter
 * limit: after such a failure nothing is received until a small read has succeeded.
 */
export interface Outage {
  /** True when the failure says something about the API server rather than about one message. */
  report(error: unknown): boolean;
  /** Resolves when the API server answers, or the signal is aborted. */
  over(signal: AbortSignal): Promise<void>;
}

export function trackOutage({ kube, namespace, logger, clock, random }: OutageDependencies): Outage {
  let ongoing = false;
  return {
    report(error) {
      const concernsAll = isKubeError(error) && (error.retryable || error.reason === 'Unauthorized');
      if (concernsAll && !ongoing)
        logger.warn(errorFields(error), 'the Kubernetes API fails: receiving pauses');
      ongoing ||= concernsAll;
      return concernsAll;
    },
    async over(signal) {
      for (let tries = 0; ongoing && !signal.aborted; tries++) {
        try {
          await kube.list(AGENT_RUNS, { namespace, limit: 1 }, { signal });
          ongoing = false;
          logger.info({}, 'the Kubernetes API answers again: receiving goes on');
        } catch {
          // Said once when it began; the failures of every try would say no more.
          await sleep(clock, backoffMs(tries, 500, 15_000, random), signal);
        }
      }
    },
  };
}
