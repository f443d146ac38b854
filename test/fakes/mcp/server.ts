import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createMcpHandler, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { type FakeTool, searchTool, serverOf } from './tools.ts';

export interface FakeMcp {
  /** Address of the endpoint. */
  readonly url: string;
  readonly token: string;
  /** What the server has; may be changed while it runs. */
  tools: readonly FakeTool[];
  /** Names of the tools that were called, in order. */
  readonly calls: readonly string[];
  /** Methods of all requests that carried the token, with their HTTP method. */
  readonly requests: readonly string[];
  /** Requests without the token, or that no server would understand. */
  readonly refusals: readonly string[];
  /** Sessions that were opened and not ended by their client. */
  readonly openSessions: number;
  /** As after a restart: clients have to begin anew. */
  forgetSessions(): void;
  /** Answers the next requests itself, until it is taken away. */
  intercept: ((request: IncomingMessage, body: string, response: ServerResponse) => boolean) | undefined;
  stop(): Promise<void>;
}

export interface FakeMcpOptions {
  /** `sessions`: the protocol of 2025, with a session id. `requests`: that of 2026, each request on its own. */
  readonly protocol?: 'sessions' | 'requests';
  readonly tools?: readonly FakeTool[];
  readonly pageSize?: number;
}

/** An MCP server over streamable HTTP that wants a bearer token. The SDK's server side checks the messages. */
export async function startMcp(options: FakeMcpOptions = {}): Promise<FakeMcp> {
  const { protocol = 'sessions', pageSize } = options;
  const token = `mcp-${randomUUID()}`;
  const calls: string[] = [];
  const requests: string[] = [];
  const refusals: string[] = [];
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const serve = () =>
    serverOf(() => fake.tools, {
      onCall: (name) => void calls.push(name),
      ...(pageSize !== undefined && { pageSize }),
    });
  const handler = createMcpHandler(serve, { legacy: 'reject' });

  async function inSession(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return Response.json(rpcError(-32_001, 'Session not found'), { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, transport),
      onsessionclosed: (session) => void sessions.delete(session),
    });
    await serve().connect(transport);
    return transport.handleRequest(request);
  }

  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const body = await bodyOf(incoming);
      if (fake.intercept?.(incoming, body, outgoing) === true) return;
      if (incoming.headers.authorization !== `Bearer ${token}`) {
        refusals.push(`${incoming.method}: no token`);
        return send(outgoing, Response.json(rpcError(-32_000, 'Unauthorized'), { status: 401 }));
      }
      requests.push(`${incoming.method} ${body === '' ? '' : (JSON.parse(body).method ?? '')}`.trim());
      const request = new Request(`http://127.0.0.1${incoming.url}`, {
        method: incoming.method ?? 'GET',
        headers: Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
        ...(body !== '' && { body }),
      });
      await send(outgoing, await (protocol === 'sessions' ? inSession(request) : handler.fetch(request)));
    })().catch((error: unknown) => {
      refusals.push(String(error));
      outgoing.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const fake: FakeMcp = {
    url: `http://127.0.0.1:${port}/mcp`,
    token,
    tools: options.tools ?? [searchTool],
    calls,
    requests,
    refusals,
    get openSessions() {
      return sessions.size;
    },
    forgetSessions: () => sessions.clear(),
    intercept: undefined,
    async stop() {
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return fake;
}

const rpcError = (code: number, message: string) => ({ jsonrpc: '2.0', id: null, error: { code, message } });

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

async function send(outgoing: ServerResponse, answer: Response): Promise<void> {
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void outgoing.end();
  for await (const chunk of Readable.fromWeb(answer.body)) outgoing.write(chunk);
  outgoing.end();
}
