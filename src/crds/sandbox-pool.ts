import { z } from 'zod';
import { duration } from './duration.ts';
import { API_VERSION, type KubeObject, type ResourceKind } from './meta.ts';
import { cel, listMap, map, type Plain, text } from './schema.ts';
import { conditions, count, localSecretRef, secretKeyRef, timestamp } from './shapes.ts';

/** A Kubernetes quantity, as a string or a whole number. */
const quantity = z
  .union([
    z.int().min(0),
    text(32, 1).regex(
      /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/,
      'must be a Kubernetes quantity such as 100m, 2 or 4Gi',
    ),
  ])
  .meta({ 'x-kubernetes-int-or-string': true });

const nodeSelector = map(text(63), 16);

const tolerations = z
  .array(
    z.object({
      key: text(316).optional().describe('Key of the taint. Left out with operator Exists: every taint.'),
      operator: z
        .enum(['Exists', 'Equal'])
        .optional()
        .describe('Equal (the default) compares value, Exists does not.'),
      value: text(63).optional().describe('Value of the taint, for operator Equal.'),
      effect: z
        .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
        .optional()
        .describe('Effect of the taint. Left out: every effect.'),
      tolerationSeconds: count.optional().describe('For NoExecute: seconds until the eviction.'),
    }),
  )
  .max(16);

const imagePullPolicy = z.enum(['Always', 'IfNotPresent', 'Never']);

const pod = z.object({
  image: text(512, 1).describe(
    'Image of the sandbox. It needs sh, tar, gzip, jq, yq and python3, and helm for chart bumps; it is run as a user other than root.',
  ),
  imagePullPolicy: imagePullPolicy
    .optional()
    .describe("When the image is pulled. Left out: Kubernetes' own default for the image's tag."),
  imagePullSecrets: listMap(z.array(localSecretRef).max(8), 'name')
    .optional()
    .describe(
      "Secrets with registry credentials, in the pool's namespace. They never reach the inside of the sandbox.",
    ),
  resources: z
    .object({
      requests: map(quantity, 16)
        .optional()
        .describe('What the scheduler reserves: {cpu: 100m, memory: 256Mi}.'),
      limits: map(quantity, 16)
        .optional()
        .describe('What the sandbox may use at most: {cpu: "2", memory: 2Gi}.'),
    })
    .optional()
    .describe(
      'Resources of one sandbox. Left out: 100m CPU, 256Mi and 256Mi of ephemeral storage requested; 1 CPU, 1Gi and 2Gi at most. A limit of memory is needed where config/admission is installed.',
    ),
  workspace: z
    .object({
      sizeLimit: quantity
        .default('2Gi')
        .describe('Most that /tmp may hold, default 2Gi; a sandbox that exceeds it is evicted.'),
    })
    .prefault({})
    .describe('The only place a sandbox can write to: an emptyDir at /tmp.'),
  runtimeClassName: text(253, 1)
    .optional()
    .describe('RuntimeClass for stronger isolation, such as gvisor or kata. Left out: the default runtime.'),
  nodeSelector: nodeSelector.optional().describe('Labels that a node must carry to run a sandbox.'),
  tolerations: tolerations.optional().describe('Taints that sandboxes put up with.'),
});

const virtualMachineInstance = z.object({
  containerDisk: text(512, 1).describe('Image with the disk of the machine (KubeVirt containerDisk).'),
  imagePullPolicy: imagePullPolicy.optional().describe('When the image is pulled.'),
  cpuCores: z.int().min(1).max(64).default(2).describe('Virtual CPU cores of one machine, default 2.'),
  memory: quantity.default('4Gi').describe('Memory of one machine, default 4Gi.'),
  ssh: z
    .object({
      user: text(32, 1)
        .regex(/^[a-z_][a-z0-9_-]*$/, 'must be a Unix user name')
        .default('sandbox')
        .describe('User that commands run as, default sandbox.'),
      privateKeySecretRef: secretKeyRef(undefined, "the private key in OpenSSH's format").describe(
        'Private key to log in with; its public half is put on every machine of the pool.',
      ),
    })
    .describe('How the operator reaches the machines.'),
  nodeSelector: nodeSelector.optional().describe('Labels that a node must carry to run a machine.'),
  tolerations: tolerations.optional().describe('Taints that machines put up with.'),
});

/** Where clouds hand out credentials to whoever asks. */
export const METADATA_SERVICES = [
  { address: '169.254.169.254', port: 80 },
  { address: 'fd00:ec2::254', port: 80 },
] as const;

const probeTarget = z.object({
  address: text(45, 2)
    .regex(/^[0-9a-fA-F.:]+$/, 'must be an IPv4 or IPv6 address')
    .describe('An IPv4 or IPv6 address; no host name, since sandboxes resolve none.'),
  port: z.int().min(1).max(65535).describe('TCP port.'),
});

export const SandboxPoolSpec = cel(
  z.object({
    replicas: z
      .int()
      .min(0)
      .max(500)
      .default(3)
      .meta({ format: 'int32' })
      .describe('Sandboxes that stand by, default 3. Claimed ones come on top. kubectl scale sets it.'),
    backend: cel(
      z
        .enum(['Pod', 'VirtualMachineInstance'])
        .default('Pod')
        .describe('What a sandbox is: Pod (the default), or VirtualMachineInstance, which needs KubeVirt.'),
      {
        rule: 'self == oldSelf',
        message: 'spec.backend cannot be changed: create another SandboxPool and point the workflows at it',
        reason: 'FieldValueForbidden',
      },
    ),
    pod: pod.optional().describe('The sandboxes of backend Pod.'),
    virtualMachineInstance: virtualMachineInstance
      .optional()
      .describe('The sandboxes of backend VirtualMachineInstance.'),
    claim: z
      .object({
        timeout: duration
          .default('0s')
          .describe(
            'How long a run waits for a free sandbox, as a Go duration. 0s (the default) waits until the run itself times out.',
          ),
        createOnEmpty: z
          .boolean()
          .default(false)
          .describe(
            'true: when nothing stands by, make one more sandbox for the run instead of waiting. Default false.',
          ),
      })
      .prefault({})
      .describe('What a run does when no sandbox is free.'),
    maxActive: duration
      .default('30m')
      .describe(
        'How long one run may keep a sandbox, as a Go duration, default 30m; it is deleted afterwards whatever happens.',
      ),
    linger: z
      .object({
        duration: duration
          .default('5m')
          .describe(
            'How long a sandbox is kept after its run for a reply, as a Go duration, default 5m. 0s: not at all.',
          ),
        max: z
          .int()
          .min(0)
          .max(500)
          .default(2)
          .describe('Most sandboxes that are kept that way at once, default 2.'),
      })
      .prefault({})
      .describe(
        'Keeps the sandbox of a finished run so that a reply continues at once. Only the same session gets it.',
      ),
    egressProbe: z
      .object({
        enabled: z
          .boolean()
          .default(true)
          .describe(
            'true (the default): a sandbox can be claimed only after it was shown to reach no network. false trusts the cluster.',
          ),
        period: duration
          .default('30s')
          .describe(
            'How often each standby sandbox is probed again, as a Go duration, default 30s. One of them is probed every 3 s whatever this says.',
          ),
        targets: z
          .array(probeTarget)
          .max(16)
          .default([...METADATA_SERVICES])
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .describe(
            'Addresses that must not be reachable, beside the API server, the kubelet, name servers, other pods and IPv6 neighbours, which are always tried. Default: the metadata services of clouds.',
          ),
      })
      .prefault({})
      .describe('Proof from inside the sandbox that its network is blocked.'),
  }),
  {
    rule: "(self.backend == 'Pod') == has(self.pod)",
    message: 'spec.pod is required when backend is Pod, and must be left out otherwise',
    fieldPath: '.pod',
  },
  {
    rule: "(self.backend == 'VirtualMachineInstance') == has(self.virtualMachineInstance)",
    message:
      'spec.virtualMachineInstance is required when backend is VirtualMachineInstance, and must be left out otherwise',
    fieldPath: '.virtualMachineInstance',
  },
);
export type SandboxPoolSpec = Plain<z.infer<typeof SandboxPoolSpec>>;

export const SandboxPoolStatus = z.object({
  conditions: conditions
    .optional()
    .describe(
      'Ready: sandboxes can be claimed. EgressBlocked: their network is proven shut. Progressing: the pool is filling up.',
    ),
  observedGeneration: count.optional().describe('metadata.generation that the operator has acted on.'),
  replicas: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .meta({ format: 'int32' })
    .optional()
    .describe('Sandboxes that stand by, ready or not.'),
  ready: count.optional().describe('Sandboxes that can be claimed now.'),
  claimed: count.optional().describe('Sandboxes that a run owns.'),
  lingering: count.optional().describe('Sandboxes kept for a reply.'),
  setback: z
    .object({
      failures: count.describe('Times in a row that standby sandboxes ended by themselves.'),
      held: count.describe('Sandboxes fewer than spec.replicas that stand by until retryAt.'),
      pod: text(253).describe('The one that ended last.'),
      reason: text(128).describe("Kubernetes' word: Evicted, OutOfmemory, NodeAffinity."),
      message: text(1024).describe('What Kubernetes says of it.'),
      time: timestamp.describe('When that was seen, RFC 3339.'),
      retryAt: timestamp.describe('When they are replaced, RFC 3339. The pauses grow from 5 s to 5 minutes.'),
    })
    .optional()
    .describe(
      'Standby sandboxes that ended by themselves within the last ten minutes. The first time they are replaced at once, then after growing pauses.',
    ),
  selector: text(1024)
    .optional()
    .describe('Label selector of the standby sandboxes, for kubectl scale and autoscalers.'),
});
export type SandboxPoolStatus = Plain<z.infer<typeof SandboxPoolStatus>>;

export type SandboxPool = KubeObject & {
  readonly spec: SandboxPoolSpec;
  readonly status?: SandboxPoolStatus;
};

export const SANDBOX_POOLS: ResourceKind<SandboxPool> = {
  apiVersion: API_VERSION,
  kind: 'SandboxPool',
  plural: 'sandboxpools',
  namespaced: true,
};
