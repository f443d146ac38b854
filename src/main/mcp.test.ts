import { describe, expect, it } from 'vitest';
import { aWorkflow } from '../../test/builders/workflow.ts';
import type { AgentWorkflowSpec } from '../crds/agent-workflow.ts';
import { createHttpClient } from '../http/client.ts';
import { createReferences } from '../settings/references.ts';
import { declaredServers } from './mcp.ts';
import { sourceAccess } from './sources.ts';

type Server = NonNullable<AgentWorkflowSpec['dataSources']['mcp']>[number];

const TIERS: Readonly<Record<string, string>> = { docs: 'tool', bot: 'action' };
const secrets: string[] = [];
const references = createReferences({
  readSecret: async (_namespace, name) =>
    name in TIERS
      ? {
          labels: { 'hummingbird.dev/token-tier': TIERS[name] ?? '' },
          data: { token: Buffer.from(`${name}-token-0001`).toString('base64') },
        }
      : undefined,
  readConfigMapKey: async () => undefined,
  readBuiltinPrompt: async () => 'Look.',
  onSecret: (value) => void secrets.push(value),
});

const server = (changes: Partial<Server> = {}): Server => ({
  name: 'docs',
  allowedTools: ['search'],
  requireApproval: [],
  approvals: [],
  ...(changes.command === undefined && { url: 'https://mcp.example.org/mcp' }),
  ...changes,
});

const declared = (mcp: readonly Server[], programs: readonly string[] = []) =>
  declaredServers({ references, programs }, aWorkflow({ dataSources: { mcp } }));

describe('the MCP servers of a workflow', () => {
  it('have their address or program, their token, and what was pinned', async () => {
    const found = await declared(
      [
        server({
          tokenSecretRef: { name: 'docs', key: 'token' },
          requireApproval: ['search'],
          approvals: [{ tool: 'search', definitionSHA256: 'a'.repeat(64) }],
        }),
        server({ name: 'local', command: ['/usr/bin/mcp-local', '--read-only'] }),
      ],
      ['/usr/bin/mcp-local'],
    );
    expect(found).toMatchObject({
      kind: 'Ok',
      value: [
        {
          reach: { kind: 'Http', url: 'https://mcp.example.org/mcp' },
          requireApproval: ['search'],
          pinned: new Map([['search', 'a'.repeat(64)]]),
        },
        {
          reach: { kind: 'Program', program: '/usr/bin/mcp-local', args: ['--read-only'] },
          token: undefined,
        },
      ],
    });
    expect(found.kind === 'Ok' && found.value[0]?.token?.reveal()).toBe('docs-token-0001');
    expect(secrets).toContain('docs-token-0001');
  });

  it.each<[string, Server, string, RegExp]>([
    [
      'a Secret that is not there',
      server({ tokenSecretRef: { name: 'gone', key: 'token' } }),
      'NotFound',
      /spec\.dataSources\.mcp\[docs\]\.tokenSecretRef: Secret \S+\/gone does not exist/,
    ],
    [
      'a token of another tier',
      server({ tokenSecretRef: { name: 'bot', key: 'token' } }),
      'WrongTier',
      /needs tool/,
    ],
    [
      'a program that nobody has allowed',
      server({ command: ['/bin/sh', '-c', 'id'] }),
      'ProgramNotAllowed',
      /--mcp-command \/bin\/sh/,
    ],
    [
      'a program that is called like an allowed one',
      server({ command: ['mcp-local'] }),
      'ProgramNotAllowed',
      /does not start mcp-local/,
    ],
  ])('with %s cannot be had, and a run is told before it begins', async (_what, one, reason, message) => {
    const invalid = { kind: 'Invalid', reason, message: expect.stringMatching(message) };
    expect(await declared([one], ['/usr/bin/mcp-local'])).toEqual(invalid);
    const http = createHttpClient();
    const credentials = { references, http, programs: ['/usr/bin/mcp-local'], onSecret: () => undefined };
    const workflow = aWorkflow({ dataSources: { mcp: [one] } });
    expect(await sourceAccess(credentials, workflow, 'group/app')).toEqual(invalid);
    await http.close();
  });
});
