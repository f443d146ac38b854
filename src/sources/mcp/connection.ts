import {
  type CallToolResult,
  Client,
  type Tool as McpTool,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client';
import type { HttpClient } from '../../http/client.ts';
import { LOST_ANSWER, mcpFetch } from './http-fetch.ts';
import { ProgramTransport } from './program-transport.ts';
import { readable } from './readable.ts';
import { type McpServerConfig, McpServerError } from './server-config.ts';

export interface ConnectionMeans {
  readonly http: HttpClient;
  /** Full paths of programs that may be started. */
  readonly programs: readonly string[];
  /** Default: HANDSHAKE_MS and CALL_MS. */
  readonly patience?: { readonly handshakeMs: number; readonly callMs: number };
  /** PATH of the programs. */
  readonly path: string;
  /** What a program writes to stderr, line by line, and what is odd in an answer. */
  readonly onComplaint: (server: string, line: string) => void;
}

/** One session with one server. */
export interface Connection {
  /** All tools of the server, as far as it tells them within the bounds. */
  listTools(signal: AbortSignal): Promise<readonly McpTool[]>;
  /** Throws `ConnectionLostError`, `McpServerError`, or the signal's reason. */
  call(tool: McpTool, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CallToolResult>;
  close(): Promise<void>;
}

/** The session is gone. `sent`: the server may have done what was asked. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
  readonly sent: boolean;

  constructor(message: string, options: { readonly sent: boolean; readonly cause: unknown }) {
    super(message, { cause: options.cause });
    this.sent = options.sent;
  }
}

/** For the handshake and each page of tools: nothing of it takes long. */
const HANDSHAKE_MS = 20_000;
/** For one call; tools that search or build take their time. */
const CALL_MS = 120_000;
/** A program that was made before version negotiation may say nothing at all to it. */
const PROBE_MS = 5_000;
/** Of one message: a tool's answer is held in memory once. */
const MESSAGE_BYTES = 8 * 1024 * 1024;
const PAGES_MAX = 16;
const TOOLS_MAX = 1_000;
/** Environment variable in which a program finds its token. */
export const TOKEN_VARIABLE = 'MCP_TOKEN';

/** Opens a session. Throws `McpServerError`, or the signal's reason. */
export async function connect(
  config: McpServerConfig,
  means: ConnectionMeans,
  signal: AbortSignal,
): Promise<Connection> {
  signal.throwIfAborted();
  try {
    return await connected(config, means, 'auto', signal);
  } catch (error) {
    signal.throwIfAborted();
    // A program of an older protocol may end, or say nothing, when it is asked which one it speaks.
    if (config.reach.kind === 'Http' || error instanceof McpServerError) throw failure(config, error);
  }
  try {
    return await connected(config, means, 'legacy', signal);
  } catch (error) {
    signal.throwIfAborted();
    throw failure(config, error);
  }
}

async function connected(
  config: McpServerConfig,
  means: ConnectionMeans,
  mode: 'auto' | 'legacy',
  signal: AbortSignal,
): Promise<Connection> {
  const transport = transportOf(config, means);
  const client = new Client(
    { name: 'hummingbird-operator', version: '1' },
    // A server gets nothing out of this client: no files, no model calls, no questions to people.
    {
      capabilities: {},
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode, probe: probe(config, patienceOf(means)) },
    },
  );
  client.onerror = (error) => {
    // Our own, behind an answer that came.
    if (!error.message.includes(`"code":${LOST_ANSWER}`)) means.onComplaint(config.name, messageOf(error));
  };
  const stop = (): void => void transport.close();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await client.connect(transport, { timeout: patienceOf(means).handshakeMs, signal });
    return new ClientConnection(config, client, transport, patienceOf(means));
  } catch (error) {
    await transport.close();
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

type Patience = NonNullable<ConnectionMeans['patience']>;

const patienceOf = ({ patience }: ConnectionMeans): Patience =>
  patience ?? { handshakeMs: HANDSHAKE_MS, callMs: CALL_MS };

const probe = ({ reach }: McpServerConfig, { handshakeMs }: Patience) => ({
  timeoutMs: reach.kind === 'Program' ? Math.min(PROBE_MS, handshakeMs) : handshakeMs,
});

function transportOf({ name, reach, token }: McpServerConfig, means: ConnectionMeans): Transport {
  if (reach.kind === 'Http')
    return new StreamableHTTPClientTransport(new URL(reach.url), {
      fetch: mcpFetch({
        http: means.http,
        silenceMs: patienceOf(means).callMs + 5_000,
        maxBytes: MESSAGE_BYTES,
      }),
      reconnectionOptions: {
        ...{ initialReconnectionDelay: 0, maxReconnectionDelay: 0, reconnectionDelayGrowFactor: 1 },
        maxRetries: 0,
      },
      ...(token === undefined
        ? {}
        : { requestInit: { headers: { authorization: `Bearer ${token.reveal()}` } } }),
    });
  if (!means.programs.includes(reach.program))
    throw new McpServerError(
      `MCP server ${name}: the operator does not start ${reach.program}; allow it with --mcp-command ${reach.program}`,
    );
  return new ProgramTransport({
    program: reach.program,
    args: reach.args,
    env: { PATH: means.path, ...(token === undefined ? {} : { [TOKEN_VARIABLE]: token.reveal() }) },
    maxBytes: MESSAGE_BYTES,
    onComplaint: (line) => means.onComplaint(name, line),
  });
}

class ClientConnection implements Connection {
  readonly #config: McpServerConfig;
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #patience: Patience;

  constructor(config: McpServerConfig, client: Client, transport: Transport, patience: Patience) {
    this.#patience = patience;
    this.#config = config;
    this.#client = client;
    this.#transport = transport;
  }

  async listTools(signal: AbortSignal): Promise<readonly McpTool[]> {
    const tools: McpTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < PAGES_MAX && tools.length < TOOLS_MAX; page += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const answer = await this.#client
        .request({ method: 'tools/list', params }, { timeout: this.#patience.handshakeMs, signal })
        .catch((error: unknown) => {
          signal.throwIfAborted();
          throw failure(this.#config, error);
        });
      tools.push(...answer.tools);
      cursor = answer.nextCursor;
      if (cursor === undefined) break;
    }
    return tools.slice(0, TOOLS_MAX);
  }

  async call(
    tool: McpTool,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    // What it returns is shown as it is: an answer of another form than promised is worth more than none.
    const { outputSchema: _unchecked, ...toolDefinition } = tool;
    try {
      return await this.#client.callTool(
        { name: tool.name, arguments: { ...args } },
        { signal, timeout: this.#patience.callMs, toolDefinition },
      );
    } catch (error) {
      signal.throwIfAborted();
      throw this.#explained(error);
    }
  }

  async close(): Promise<void> {
    if (this.#transport instanceof StreamableHTTPClientTransport) {
      // Good manners, for as long as they cost little.
      const goodbye = this.#transport.terminateSession().catch(() => undefined);
      const patience = Promise.withResolvers<void>();
      const timer = setTimeout(patience.resolve, 1_000);
      await Promise.race([goodbye, patience.promise]);
      clearTimeout(timer);
    }
    await this.#client.close();
    // The client lets go of a transport that has ended, and of its process group with it.
    await this.#transport.close();
  }

  #explained(error: unknown): Error {
    const message = messageOf(error);
    // A session that the server has forgotten: the call was not looked at.
    if (error instanceof SdkHttpError && error.status === 404)
      return new ConnectionLostError(message, { sent: false, cause: error });
    if (error instanceof ProtocolError && error.code === LOST_ANSWER)
      return new ConnectionLostError(message, { sent: true, cause: error });
    if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed)
      return new ConnectionLostError(message, { sent: true, cause: error });
    if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
      return new McpServerError(`no answer within ${this.#patience.callMs / 1000} s`);
    // What a program's pipe says: it has ended before it could be asked.
    if (!isHttp(this.#transport) && !(error instanceof ProtocolError || error instanceof SdkError))
      return new ConnectionLostError(message, { sent: false, cause: error });
    return new McpServerError(message, { cause: error });
  }
}

const isHttp = (transport: Transport): boolean => transport instanceof StreamableHTTPClientTransport;

function failure({ name }: McpServerConfig, error: unknown): McpServerError {
  return error instanceof McpServerError
    ? error
    : new McpServerError(`MCP server ${name}: ${messageOf(error)}`, { cause: error });
}

/** Of a third party, for the most part. */
const messageOf = (error: unknown): string =>
  readable(error instanceof Error ? error.message : String(error), 500).replace(/\s+/g, ' ');
