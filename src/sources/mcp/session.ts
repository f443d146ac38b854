import type { CallToolResult, Tool as McpTool } from '@modelcontextprotocol/client';
import { type Connection, ConnectionLostError } from './connection.ts';
import { definitionDigest } from './definition.ts';
import { McpServerError } from './server-config.ts';

/**
 * A connection that is opened again, once for each loss. A server that comes back may have become another one: a tool
 * is called only while its definition is the one that the model was told.
 */
export class McpSession {
  readonly #open: (signal: AbortSignal) => Promise<Connection>;
  /** Of the run. */
  readonly #signal: AbortSignal;
  #connection: Connection;
  #lost = false;
  /** Digests by name, of a server that was connected again. */
  #definitions: ReadonlyMap<string, string> | undefined;
  #reopening: Promise<void> | undefined;

  constructor(
    connection: Connection,
    open: (signal: AbortSignal) => Promise<Connection>,
    signal: AbortSignal,
  ) {
    this.#connection = connection;
    this.#open = open;
    this.#signal = signal;
  }

  /** Throws `McpServerError`, or the signal's reason. */
  async call(
    tool: McpTool,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    try {
      return await this.#callOnce(tool, args, signal);
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) throw error;
      if (error.sent)
        throw new McpServerError(
          `the connection was lost during the call (${error.message}); whether it was carried out is not known`,
        );
    }
    try {
      return await this.#callOnce(tool, args, signal);
    } catch (error) {
      throw error instanceof ConnectionLostError ? new McpServerError(error.message) : error;
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #callOnce(
    tool: McpTool,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    if (this.#lost) {
      this.#reopening ??= this.#reopen().finally(() => {
        this.#reopening = undefined;
      });
      await this.#reopening;
      signal.throwIfAborted();
    }
    if (this.#definitions !== undefined && this.#definitions.get(tool.name) !== definitionDigest(tool))
      throw new McpServerError('its definition is not the one any more that this run was told');
    const used = this.#connection;
    try {
      return await used.call(tool, args, signal);
    } catch (error) {
      if (error instanceof ConnectionLostError && used === this.#connection) this.#lost = true;
      throw error;
    }
  }

  async #reopen(): Promise<void> {
    await this.#connection.close().catch(() => undefined);
    const connection = await this.#open(this.#signal);
    this.#connection = connection;
    const tools = await connection.listTools(this.#signal);
    this.#definitions = new Map(tools.map((tool) => [tool.name, definitionDigest(tool)]));
    this.#lost = false;
  }
}
