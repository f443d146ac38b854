import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type FakeMcp, startMcp } from '../../test/fakes/mcp/server.ts';
import { searchTool } from '../../test/fakes/mcp/tools.ts';
import type { McpListSettings } from '../cli/mcp-command.ts';
import { definitionDigest } from '../sources/mcp/definition.ts';
import { listMcpTools } from './mcp-list.ts';

const PROGRAM = fileURLToPath(new URL('../../test/fakes/mcp/program.ts', import.meta.url));
let fake: FakeMcp | undefined;
afterEach(() => fake?.stop());

async function listed(settings: Partial<McpListSettings>, env: Record<string, string> = {}): Promise<string> {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  await listMcpTools(
    { name: 'docs', url: undefined, command: [], tokenEnv: undefined, ...settings },
    { env, stdout: { write }, stderr: { write: () => undefined }, interrupt: new AbortController().signal },
  );
  return text;
}

it('shows the tools of a server as the model sees them, and digests that a workflow can hold', async () => {
  fake = await startMcp({
    tools: [
      searchTool,
      { ...searchTool, definition: { ...searchTool.definition, name: 'find', description: 'Finds\u202e.' } },
    ],
  });
  const text = await listed({ url: fake.url, tokenEnv: 'DOCS_TOKEN' }, { DOCS_TOKEN: fake.token });
  expect(parse(text)).toMatchObject({
    tools: [
      { tool: 'search', description: 'Searches the documentation. (MCP server docs)' },
      { tool: 'find', description: 'Finds. (MCP server docs)' },
    ],
    approvals: [
      { tool: 'search', definitionSHA256: definitionDigest(searchTool.definition) },
      { tool: 'find', definitionSHA256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ],
  });
  expect(text).not.toContain(fake.token);
});

it('shows those of a program', async () => {
  const text = await listed({ command: [process.execPath, PROGRAM] }, { PATH: '/usr/bin:/bin' });
  expect(parse(text).approvals.map(({ tool }: { tool: string }) => tool)).toContain('search');
});

it('says which variable is missing, and what refuses', async () => {
  fake = await startMcp();
  await expect(listed({ url: fake.url, tokenEnv: 'DOCS_TOKEN' })).rejects.toThrow('DOCS_TOKEN is not set');
  await expect(listed({ url: fake.url })).rejects.toThrow(/MCP server docs: .*401|Unauthorized/);
});
