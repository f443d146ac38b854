import { type PodSandboxOptions, podSandbox } from '../pod/pod.ts';
import type { PodPoolOptions } from './pool.ts';

/** Commands in a pod that a pool handed out, over `connection`. */
export const podOpener =
  (access: Pick<PodSandboxOptions, 'connection' | 'client' | 'logger'>): PodPoolOptions['openPod'] =>
  ({ pod, namespace, name, inherited, deletePod, lingerPod }) =>
    podSandbox({
      ...access,
      ref: { kind: 'PodPool', name, namespace },
      ...{ namespace, pod: name, inherited, deletePod, lingerPod },
      ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }),
    });
