// The import arrows of docs/architecture.md. A rule that is in the way means that the code is in the wrong room.
const room = (name) => `^src/${name}/`;
/** Types only: what a room promises to the others. */
const port = (name) => `^src/${name}/port\\.ts$`;
const agentPorts = '^src/agent/(models|tools)/port\\.ts$';

/** Modules of room `from` import only themselves, packages, and what is listed. */
const only = (from, allowed, comment) => ({
  name: `${from}-arrows`,
  comment,
  severity: 'error',
  from: { path: room(from), pathNot: '\\.test\\.ts$' },
  to: { path: '^(src|test|hack|bench)/', pathNot: [room(from), ...allowed] },
});

const tokens = '^src/settings/tokens\\.ts$';
const versionRange = '^src/charts/version-range\\.ts$';
const references = '^src/settings/references\\.ts$';

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    { name: 'nobody-imports-main', severity: 'error', from: {}, to: { path: '^src/main\\.ts$' } },
    {
      name: 'product-imports-no-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(test|bench|hack)/' },
    },
    only('crds', [], 'API types know nothing else'),
    only('settings', [room('crds')], 'Settings know the API types'),
    only('http', [tokens], 'The one HTTP client knows no feature'),
    only('kube', [room('crds')], 'Kubernetes plumbing knows no feature'),
    only('agent', [port('sandbox'), port('store'), room('http')], 'The agent knows ports only'),
    only(
      'sources',
      [agentPorts, port('delivery'), room('http'), tokens],
      'The tool tier never meets notes, nor what writes on bumps',
    ),
    only('notes', [room('http'), tokens], 'The action tier never meets sources'),
    only('sandbox', [room('kube'), room('crds')], 'Sandboxes know Kubernetes, nothing of GitLab'),
    only('store', [room('http')], 'Stores know bytes'),
    only(
      'charts',
      [room('http'), port('delivery')],
      'Fetched charts are bytes; what is in them is for others',
    ),
    only(
      'bumps',
      [room('http'), port('delivery'), tokens],
      'What is written on a bump: the action tier, which never meets sources',
    ),
    only(
      'upstream',
      [room('http'), room('delivery'), versionRange],
      'What people upstream wrote, read without a token',
    ),
    only(
      'delivery',
      [port('sandbox'), agentPorts, '^src/crds/wildcards\\.ts$'],
      'Checks and edits of bumps know ports only',
    ),
    only(
      'evals',
      [room('agent'), room('delivery'), room('sources'), room('http'), tokens],
      'Evals run what is shipped, and reach nothing with it',
    ),
    only(
      'bridge',
      [room('crds'), room('kube'), port('notes'), port('store'), tokens],
      'The bridge decides and creates runs; its queue adapter lives beside its port',
    ),
    only(
      'controllers',
      [
        room('crds'),
        room('kube'),
        room('agent'),
        room('delivery'),
        port('sandbox'),
        port('notes'),
        port('store'),
        port('sources'),
        tokens,
        references,
      ],
      'Controllers import ports; main.ts joins the adapters',
    ),
    only(
      'cli',
      [
        room('crds'),
        room('kube'),
        room('agent'),
        room('settings'),
        room('controllers'),
        room('bridge'),
        room('delivery'),
        room('http'),
        port('sandbox'),
        port('notes'),
        port('store'),
        port('sources'),
      ],
      'Commands are handed their adapters by main.ts',
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
