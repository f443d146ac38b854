// An MCP server over stdin and stdout, for tests: `program.ts [--silent-probe] [--child]`.
import { spawn } from 'node:child_process';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { searchTool, serverOf, text } from './tools.ts';

const flags = process.argv.slice(2);
if (flags.includes('--refuse')) {
  process.stderr.write('no licence found\n');
  process.exit(3);
}

const tools = () => [
  searchTool,
  {
    definition: { name: 'environment', inputSchema: { type: 'object' as const } },
    run: () => text(JSON.stringify({ ...process.env })),
  },
  {
    definition: { name: 'pids', inputSchema: { type: 'object' as const } },
    run: () => text(JSON.stringify([process.pid, ...children.map(({ pid }) => pid)])),
  },
  {
    definition: { name: 'die', inputSchema: { type: 'object' as const } },
    run: () => process.exit(1),
  },
  {
    definition: { name: 'flood', inputSchema: { type: 'object' as const } },
    run: () => text('x'.repeat(9 * 1024 * 1024)),
  },
];

/** What a server leaves behind when nobody ends its group; asked to end, it does not. */
const children = flags.includes('--child')
  ? [
      spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6)'], {
        stdio: 'ignore',
      }),
    ]
  : [];
process.stderr.write('ready to serve\n');

// Of servers that were made before version negotiation, some end at what they do not know.
if (flags.includes('--old')) await serverOf(tools).connect(new StdioServerTransport());
else serveStdio(() => serverOf(tools));
