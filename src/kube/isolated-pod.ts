import type { Container, NetworkPolicy, PodSpec } from './kinds.ts';

/** Where a pod's one container may work, and with how much. */
export interface IsolatedPodSettings {
  readonly image: string;
  readonly imagePullPolicy: NonNullable<Container['imagePullPolicy']>;
  readonly resources: NonNullable<Container['resources']>;
  /** Most that /tmp may hold, as a quantity. */
  readonly workspaceLimit: string;
}

/** Name of the container that runs commands. */
export const SANDBOX_CONTAINER = 'sandbox';

/** On every sandbox pod. */
export const SANDBOX_NAME = { 'app.kubernetes.io/name': 'hummingbird-agent-sandbox' } as const;

/** For a NetworkPolicy: nothing in either direction. */
export const NO_TRAFFIC = {
  policyTypes: ['Egress', 'Ingress'],
  egress: [],
  ingress: [],
} as const satisfies Partial<NetworkPolicy['spec']>;

/**
 * A pod whose commands reach nothing and hold no credential; it passes Pod Security `restricted`. How long it lives
 * is the caller's to say. No runAsUser: OpenShift assigns one, elsewhere the image's applies.
 */
export function isolatedPodSpec(settings: IsolatedPodSettings): PodSpec {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // `sleep` as process 1 ignores SIGTERM. Not 0: the object would vanish while its processes still run.
    terminationGracePeriodSeconds: 1,
    // No name server is reachable anyway: like this a lookup fails at once instead of after its timeouts.
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['127.0.0.1'] },
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container(settings)],
    volumes: [{ name: 'workspace', emptyDir: { sizeLimit: settings.workspaceLimit } }],
  };
}

function container({ image, imagePullPolicy, resources }: IsolatedPodSettings): Container {
  return {
    name: SANDBOX_CONTAINER,
    ...{ image, imagePullPolicy, resources },
    command: ['sleep', 'infinity'],
    workingDir: '/tmp',
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'workspace', mountPath: '/tmp' }],
  };
}
