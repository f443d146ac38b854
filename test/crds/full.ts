/** Objects with every field set that may stand together; what the API server stores of them has to read back. */
const sha = 'a'.repeat(40);
const time = '2026-01-02T03:04:05Z';
const stored = { key: 'sessions/1/context.json', sha256: 'b'.repeat(64), bytes: 51_234 };
const secret = { name: 'some-secret', key: 'token' };
const conditions = [
  {
    type: 'Ready',
    status: 'True',
    reason: 'AllGood',
    message: 'It works 🐦',
    lastTransitionTime: time,
    observedGeneration: 1,
  },
];
const tolerations = [
  { key: 'sandbox', operator: 'Equal', value: 'yes', effect: 'NoExecute', tolerationSeconds: 30 },
];

export const FULL = {
  agentrun: {
    spec: {
      workflowRef: { name: 'analyze-failures' },
      mergeRequest: { project: 'group/sub.group/app_1', iid: 42, sha },
      trigger: { kind: 'Reply', user: 'alice', userId: 7, eventId: 'e', discussionId: 'd', noteId: 9 },
      message: 'Why? 🐦',
      sessionRef: { name: 'session-1' },
      model: { name: 'model-1' },
      limits: { maxIterations: 5, contextTokens: 5000, timeout: '5m', budgetUSD: '0.25' },
      sandbox: { poolRef: { name: 'analysis', namespace: 'sandboxes' } },
      publish: { kind: 'None' },
      cancel: true,
      ttlSecondsAfterFinished: { success: 60, failure: 120 },
    },
    status: {
      phase: 'Finishing',
      conditions,
      observedGeneration: 1,
      mergeRequest: 'group/app!42',
      projectId: 1,
      sha,
      model: 'model-1',
      iterations: 3,
      toolCalls: 7,
      usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 9_007_199_254_740_991 },
      costUSD: '0.123456789',
      note: {
        discussionId: 'd',
        noteId: 9,
        url: 'https://gitlab.example.org/group/app/-/merge_requests/42#note_9',
      },
      noteIntent: { marker: 'm', time },
      sandbox: { kind: 'PodPool', name: 'analysis-1', namespace: 'sandboxes' },
      session: 'session-1',
      checkpoint: { sequence: 3, key: 'checkpoints/1/3' },
      workflow: { generation: 4, revision: 'analyze-failures-4' },
      noteProgressTime: time,
      approvals: [
        {
          ...{ id: '0123456789ab', tool: 'docs_get-page', arguments: '{}', digest: 'e'.repeat(64) },
          ...{ state: 'Approved', by: 'ada', requestTime: time, decisionTime: time, told: true },
        },
      ],
      transcript: stored,
      outcome: { ...stored, reason: 'Partial', message: 'm', time },
      promptDigest: `sha256:${'c'.repeat(64)}`,
      holder: { replica: 'operator-0', epoch: 2 },
      startTime: time,
      completionTime: '2026-01-02T03:04:05.123456+02:00',
      duration: '4m07s',
    },
  },
  agentsession: {
    spec: {
      workflowRef: { name: 'analyze-failures' },
      mergeRequest: { project: 'group/app', iid: 42 },
      discussionId: 'd',
    },
    status: {
      conditions,
      observedGeneration: 1,
      mergeRequest: 'group/app!42',
      archive: stored,
      transcript: stored,
      workspace: stored,
      runs: 3,
      lastRun: { name: 'run-3', time },
      costUSD: '0.43',
      expiresAt: time,
      lingering: { pod: 'analysis-1', namespace: 'sandboxes', until: time },
    },
  },
  agentworkflow: {
    spec: {
      description: 'Explain',
      prompt: { configMapKeyRef: { name: 'prompts', key: 'explain.md' } },
      triggers: [
        {
          event: 'Pipeline',
          rules: [{ action: 'Allow', status: ['failed'], user: ['a*'], branch: ['main'], title: ['/^fix/'] }],
          ignoreUsers: ['*-bot'],
          ignoreBranches: ['wip/*'],
        },
        { event: 'MergeRequest', ignoreUsers: [], ignoreBranches: [] },
      ],
      commands: { aliases: ['explain'] },
      concurrency: 'Queue',
      model: {
        name: 'm',
        provider: 'OpenAICompatible',
        baseURL: 'http://127.0.0.1:8080/v1',
        apiKeySecretRef: secret,
        maxOutputTokens: 4096,
        pricing: { input: '1', output: '2', cacheRead: '0.1', cacheWrite: '1.25' },
      },
      limits: {
        maxIterations: 50,
        contextTokens: 60_000,
        timeout: '25m',
        budgetUSD: '2.50',
        maxRunsPerMergeRequest: 5,
      },
      sandbox: { poolRef: { name: 'analysis', namespace: 'sandboxes' } },
      publish: { kind: 'Note', internal: false, progress: true },
      dataSources: {
        gitlab: { tokenSecretRef: secret, allowedProjects: ['group/library'] },
        konflux: {
          clusterURL: 'https://api.example.org:6443/ns/team-tenant',
          kubeconfigSecretRef: secret,
          kubearchiveURL: 'https://archive.example.org',
        },
        testingFarm: {
          artifactsURL: 'https://artifacts.example.org/tf',
          apiURL: 'https://api.example.org/v0.1',
        },
        mcp: [
          {
            name: 'docs',
            url: 'https://mcp.example.org/mcp',
            allowedTools: ['search', 'get-page'],
            requireApproval: ['get-page'],
            tokenSecretRef: secret,
            approvals: [{ tool: 'search', definitionSHA256: 'd'.repeat(64) }],
          },
          {
            name: 'local',
            command: ['/usr/bin/mcp-local', '--read-only'],
            allowedTools: ['x'],
            requireApproval: [],
            approvals: [],
          },
        ],
      },
      delivery: {
        bumps: { labels: ['renovate'], authors: ['renovate-*'] },
        edits: {
          allowPaths: ['apps/**', '**/values.yaml', '**/x/**', 'a/*/b.yaml'],
          denyPaths: ['apps/gate/**'],
          allOrNothing: false,
          maxAttempts: 3,
        },
        explainGreen: false,
        migrateDroppedVersions: false,
        structuralMigration: false,
        migrateMaxDocs: 1,
        upstreamNotes: { enabled: false, maxReleases: 1, maxCommits: 1, maxBodyChars: 1 },
        liveReads: { enabled: true, kubeconfigSecretRef: secret },
        needsHumanLabel: 'human',
        statusName: 'delivery',
      },
      projects: [
        {
          path: 'group/app',
          actionTokenSecretRef: secret,
          tokens: { gitlab: secret },
          limits: { maxIterations: 10, maxRunsPerMergeRequest: 2 },
          internal: true,
        },
      ],
      ttlAfterFinished: { success: '1h', failure: '2h' },
      suspend: true,
    },
    status: {
      conditions,
      observedGeneration: 1,
      acceptedGeneration: 1,
      projects: [{ path: 'group/app', botUserId: 4711, ready: false, message: 'm' }],
      activeRuns: 1,
      trigger: 'Pipeline,MergeRequest',
      projectsReady: '0/1',
    },
  },
  sandboxpool: {
    spec: {
      replicas: 0,
      backend: 'Pod',
      pod: {
        image: 'registry.example.org/sandbox:1',
        imagePullPolicy: 'Never',
        imagePullSecrets: [{ name: 'pull' }],
        resources: {
          requests: { cpu: '100m', 'ephemeral-storage': '1Gi' },
          limits: { cpu: 2, memory: '2Gi' },
        },
        workspace: { sizeLimit: '4Gi' },
        runtimeClassName: 'gvisor',
        nodeSelector: { pool: 'sandbox' },
        tolerations,
      },
      claim: { timeout: '1m', createOnEmpty: true },
      maxActive: '10m',
      linger: { duration: '0s', max: 0 },
      egressProbe: { enabled: false, period: '1m', targets: [{ address: '192.0.2.7', port: 5432 }] },
    },
    status: {
      conditions,
      observedGeneration: 1,
      replicas: 3,
      ready: 2,
      claimed: 1,
      lingering: 0,
      setback: {
        ...{
          failures: 2,
          held: 1,
          pod: 'analysis-x',
          reason: 'Evicted',
          message: 'the node was low on memory',
        },
        ...{ time: '2026-01-01T00:00:00Z', retryAt: '2026-01-01T00:00:10Z' },
      },
      selector: 'hummingbird.dev/pool=analysis',
    },
  },
} as const;

/** The other arm where two fields exclude each other. */
export const OTHER_ARM = {
  agentrun: {
    spec: {
      workflowRef: { name: 'analyze-failures' },
      mergeRequest: { project: 'group/app', iid: 42 },
      sandbox: { none: true },
    },
  },
  sandboxpool: {
    spec: {
      backend: 'VirtualMachineInstance',
      virtualMachineInstance: {
        containerDisk: 'registry.example.org/vm:1',
        imagePullPolicy: 'IfNotPresent',
        cpuCores: 4,
        memory: '8Gi',
        ssh: { user: 'agent', privateKeySecretRef: secret },
        nodeSelector: { pool: 'vm' },
        tolerations,
      },
    },
  },
  agentworkflow: {
    spec: {
      prompt: { text: 'Explain it' },
      model: {
        name: 'm',
        provider: 'GeminiVertex',
        vertex: { project: 'p', location: 'europe-west1', credentialsSecretRef: secret },
      },
      sandbox: { none: true },
      publish: { kind: 'None' },
      projects: [{ path: 'group/app' }],
    },
  },
} as const;
