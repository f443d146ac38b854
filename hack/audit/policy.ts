/**
 * What the API server writes down for the check of ownership: every write of a pod with the pod as it was then, every
 * command in one, and the making of every run.
 */
export const OWNERSHIP_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted'],
  omitManagedFields: true,
  rules: [
    {
      level: 'RequestResponse',
      verbs: ['create', 'update', 'patch', 'delete'],
      resources: [{ group: '', resources: ['pods', 'pods/status'] }],
    },
    { level: 'Metadata', resources: [{ group: '', resources: ['pods/exec'] }] },
    {
      level: 'RequestResponse',
      verbs: ['create', 'patch'],
      resources: [{ group: 'hummingbird.dev', resources: ['agentruns'] }],
    },
    { level: 'None' },
  ],
};
