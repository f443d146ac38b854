import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpClient } from '../../http/client.ts';
import { toolToken } from '../../settings/tokens.ts';
import type { OpenTools } from '../port.ts';
import { noMcpMetrics } from './metrics.ts';
import { createMcpServers } from './servers.ts';

const PROGRAM = fileURLToPath(new URL('../../../test/fakes/mcp/program.ts', import.meta.url));
const TOOLS = ['search', 'environment', 'pids', 'die', 'flood'];

const http = createHttpClient();
const complaints: string[] = [];
const { signal } = new AbortController();
let open: OpenTools | undefined;

afterEach(async () => {
  await open?.close();
  open = undefined;
  complaints.length = 0;
});

async function opened(...flags: string[]): Promise<OpenTools> {
  const servers = createMcpServers({
    http,
    programs: [process.execPath],
    path: '/usr/bin:/bin',
    onComplaint: (server, line) => complaints.push(`${server}: ${line}`),
    metrics: noMcpMetrics,
    serversOf: async () => [
      {
        name: 'local',
        reach: { kind: 'Program', program: process.execPath, args: [PROGRAM, ...flags] },
        token: toolToken('program-token-0001'),
        ...{ allowedTools: TOOLS, requireApproval: [], pinned: new Map() },
      },
    ],
  });
  open = await servers.open({
    workflow: { namespace: 'ns', name: 'wf' },
    ask: () => Promise.reject(new Error('asked')),
    signal,
  });
  return open;
}

async function call(tools: OpenTools, name: string, args: object = {}) {
  const tool = tools.tools.find(({ definition }) => definition.name === `local_${name}`);
  return tool?.run(args, { signal });
}

/** Zombies do not: they wait for somebody to reap them, whoever that is here. */
const lives = (pid: number): boolean => {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

describe('a program that serves', () => {
  it.each(['--new', '--old'])(
    'is spoken to over its pipes, whichever protocol it knows (%s)',
    async (flag) => {
      const tools = await opened(flag);
      expect(tools.problems).toEqual([]);
      expect(await call(tools, 'search', { query: 'x' })).toEqual({ kind: 'Text', text: 'found: x' });
    },
  );

  it('gets PATH and its token, and nothing else of the environment', async () => {
    const output = await call(await opened(), 'environment');
    expect(output?.kind === 'Text' && JSON.parse(output.text)).toEqual({
      PATH: '/usr/bin:/bin',
      MCP_TOKEN: 'program-token-0001',
    });
  });

  it('is gone after the run, with everything that it has started', async () => {
    const tools = await opened('--child');
    const output = await call(tools, 'pids');
    const pids: number[] = output?.kind === 'Text' ? JSON.parse(output.text) : [];
    expect(pids).toHaveLength(2);
    expect(pids.map(lives)).toEqual([true, true]);
    await tools.close();
    await expect.poll(() => pids.map(lives), { timeout: 60_000 }).toEqual([false, false]);
  });

  it('that ends during a call is started again for the next one', async () => {
    const tools = await opened();
    expect(await call(tools, 'die')).toMatchObject({
      kind: 'Error',
      message: expect.stringContaining('whether it was carried out is not known'),
    });
    expect(await call(tools, 'search', { query: 'again' })).toEqual({ kind: 'Text', text: 'found: again' });
  });

  it('that floods its output is ended, and the run goes on', async () => {
    const tools = await opened();
    expect(await call(tools, 'flood')).toMatchObject({ kind: 'Error' });
    expect(await call(tools, 'search', { query: 'still' })).toEqual({ kind: 'Text', text: 'found: still' });
  });

  it('that does not start is a problem, and what it wrote is told', async () => {
    const tools = await opened('--refuse');
    expect(tools.tools).toEqual([]);
    expect(tools.problems).toMatchObject([{ kind: 'ToolServerUnavailable' }]);
    expect(complaints).toContain('local: no licence found');
  });
});
