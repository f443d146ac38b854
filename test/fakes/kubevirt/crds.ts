/**
 * KubeVirt's two kinds as far as we use them, from the API's documentation. What is not named here is pruned by the
 * API server, so that a field which we misspell does not survive a round trip.
 */
export const KUBEVIRT_CRDS: readonly object[] = [
  definition('VirtualMachineInstance', 'virtualmachineinstances', ['vmi', 'vmis'], {
    spec: machineSpec(),
    status: object({
      phase: string(),
      reason: string(),
      nodeName: string(),
      evacuationNodeName: string(),
      activePods: { type: 'object', additionalProperties: string() },
      interfaces: array(object({ name: string(), ipAddress: string(), mac: string() })),
      conditions: conditions(),
    }),
  }),
  definition(
    'VirtualMachineInstanceReplicaSet',
    'virtualmachineinstancereplicasets',
    ['vmirs', 'vmirss'],
    {
      spec: object({
        replicas: integer(),
        paused: boolean(),
        selector: object({ matchLabels: { type: 'object', additionalProperties: string() } }),
        template: object({
          metadata: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          spec: machineSpec(),
        }),
      }),
      status: object({
        replicas: integer(),
        readyReplicas: integer(),
        labelSelector: string(),
        conditions: conditions(),
      }),
    },
    {
      scale: {
        specReplicasPath: '.spec.replicas',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.labelSelector',
      },
    },
  ),
];

/** Idempotent, so that test files may do it side by side. They stay: other files may be using them. */
export async function applyKubeVirt(
  kubectl: (args: readonly string[], input?: string) => Promise<string>,
): Promise<void> {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: KUBEVIRT_CRDS });
  await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], list);
  const names = ['virtualmachineinstances', 'virtualmachineinstancereplicasets'];
  await kubectl([
    ...['wait', '--for=condition=Established', '--timeout=60s'],
    ...names.map((plural) => `crd/${plural}.kubevirt.io`),
  ]);
}

function definition(
  kind: string,
  plural: string,
  shortNames: readonly string[],
  properties: Readonly<Record<string, object>>,
  subresources: object = {},
): object {
  const schema = { openAPIV3Schema: object({ ...properties }) };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.kubevirt.io` },
    spec: {
      group: 'kubevirt.io',
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), shortNames },
      versions: [
        { name: 'v1', served: true, storage: true, schema, subresources: { status: {}, ...subresources } },
      ],
    },
  };
}

function machineSpec(): object {
  const disk = object({ name: string(), serial: string(), disk: object({ bus: string() }) });
  return object({
    domain: object({
      cpu: object({ cores: integer() }),
      memory: object({ guest: quantity() }),
      resources: object({ requests: { type: 'object', additionalProperties: quantity() } }),
      devices: object({
        autoattachGraphicsDevice: boolean(),
        disks: array(disk),
        interfaces: array(object({ name: string(), masquerade: object({}) })),
        rng: object({}),
      }),
    }),
    networks: array(object({ name: string(), pod: object({}) })),
    volumes: array(
      object({
        name: string(),
        containerDisk: object({ image: string(), imagePullPolicy: string() }),
        secret: object({ secretName: string() }),
      }),
    ),
    terminationGracePeriodSeconds: integer(),
    evictionStrategy: string(),
    readinessProbe: object({
      tcpSocket: object({ port: integer() }),
      initialDelaySeconds: integer(),
      periodSeconds: integer(),
      failureThreshold: integer(),
    }),
    nodeSelector: { type: 'object', additionalProperties: string() },
    tolerations: array({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
  });
}

function conditions(): object {
  return array(object({ type: string(), status: string(), reason: string(), message: string() }));
}

function object(properties: Readonly<Record<string, object>>): object {
  return { type: 'object', properties };
}

function array(items: object): object {
  return { type: 'array', items };
}

function string(): object {
  return { type: 'string' };
}

function integer(): object {
  return { type: 'integer' };
}

function boolean(): object {
  return { type: 'boolean' };
}

function quantity(): object {
  return { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true };
}
