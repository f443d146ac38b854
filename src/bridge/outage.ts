import { AGENT_RUNS } from '../crds/agent-run.ts';
import { backoffMs, type Clock, type Random, sleep } from '../kube/clock.ts';
import { isKubeError } from '../kube/errors.ts';
import { errorFields, type Logger } from '../kube/log.ts';
import type { KubeClient } from '../kube/port.ts';
import { GitLabAwayError } from './observe.ts';
import type { BridgeGitLab } from './port.ts';

export interface OutageDependencies {
  readonly kube: KubeClient;
  /** Where the API server is asked whether it answers again. */
  readonly namespace: string;
  readonly gitlab: Pick<BridgeGitLab, 'threads'>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * While the API server or GitLab does not answer, every receive would only bring a message nearer to its
 * dead-letter limit: after such a failure nothing is received until a small read has succeeded.
 */
export interface Outage {
  /** True when the failure says something about one of the two rather than about one message. */
  report(error: unknown): boolean;
  /** Resolves when both answer, or the signal is aborted. */
  over(signal: AbortSignal): Promise<void>;
}

export function trackOutage(dependencies: OutageDependencies): Outage {
  const { kube, namespace, gitlab, logger, clock, random } = dependencies;
  const services: readonly Service[] = [
    {
      name: 'the Kubernetes API',
      concerns: (error) => isKubeError(error) && (error.retryable || error.reason === 'Unauthorized'),
      probe: (signal) => kube.list(AGENT_RUNS, { namespace, limit: 1 }, { signal }),
    },
    {
      name: 'GitLab',
      concerns: (error) => error instanceof GitLabAwayError,
      probe: (signal) => gitlab.threads.ping(signal),
    },
  ];
  const away = new Set<Service>();
  return {
    report(error) {
      const service = services.find(({ concerns }) => concerns(error));
      if (service === undefined) return false;
      if (!away.has(service)) logger.warn(errorFields(error), `${service.name} fails: receiving pauses`);
      away.add(service);
      return true;
    },
    async over(signal) {
      for (const service of away) {
        for (let tries = 0; away.has(service) && !signal.aborted; tries++) {
          try {
            await service.probe(signal);
            away.delete(service);
            logger.info({}, `${service.name} answers again: receiving goes on`);
          } catch {
            // Said once when it began; the failures of every try would say no more.
            await sleep(clock, backoffMs(tries, 500, 15_000, random), signal);
          }
        }
      }
    },
  };
}

interface Service {
  readonly name: string;
  concerns(error: unknown): boolean;
  probe(signal: AbortSignal): Promise<unknown>;
}
