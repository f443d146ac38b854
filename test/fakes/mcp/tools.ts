import { type CallToolResult, type Tool as McpTool, Server } from '@modelcontextprotocol/server';

/** A tool of the stand-in: its definition as it goes over the wire, and what it returns. */
export interface FakeTool {
  readonly definition: McpTool;
  run(args: Readonly<Record<string, unknown>>): CallToolResult | Promise<CallToolResult>;
}

export const text = (...parts: readonly string[]): CallToolResult => ({
  content: parts.map((part) => ({ type: 'text', text: part })),
});

/** Searches nothing: says what it was asked for. */
export const searchTool: FakeTool = {
  definition: {
    name: 'search',
    description: 'Searches the documentation.',
    inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
  run: ({ query }) => text(`found: ${String(query)}`),
};

/** The SDK's own server, which checks what clients send. `pageSize`: tools of one page. */
export function serverOf(
  tools: () => readonly FakeTool[],
  { pageSize = 100, onCall }: { readonly pageSize?: number; readonly onCall?: (name: string) => void } = {},
): Server {
  const server = new Server({ name: 'stand-in', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', ({ params }) => {
    const from = Number(params?.cursor ?? 0);
    const end = from + pageSize;
    const all = tools();
    return {
      tools: all.slice(from, end).map(({ definition }) => definition),
      ...(end < all.length && { nextCursor: String(end) }),
    };
  });
  server.setRequestHandler('tools/call', async ({ params }) => {
    onCall?.(params.name);
    const tool = tools().find(({ definition }) => definition.name === params.name);
    if (tool === undefined) return { ...text(`no tool ${params.name}`), isError: true };
    return tool.run(params.arguments ?? {});
  });
  return server;
}
