import type { ToolToken } from '../../settings/tokens.ts';

/** One entry of `spec.dataSources.mcp`, with its token at hand. */
export interface McpServerConfig {
  readonly name: string;
  readonly reach:
    | { readonly kind: 'Http'; readonly url: string }
    /** Program by its full path, and its arguments. */
    | { readonly kind: 'Program'; readonly program: string; readonly args: readonly string[] };
  readonly token: ToolToken | undefined;
  /** Names as the server has them; no other tool is offered. */
  readonly allowedTools: readonly string[];
  /** Of these: calls that wait for a Developer's word. */
  readonly requireApproval: readonly string[];
  /** Digests of definitions that somebody has looked at, by the tool's name. */
  readonly pinned: ReadonlyMap<string, string>;
}

/** A server that cannot be used as configured, or does not do what the protocol says. The message names it. */
export class McpServerError extends Error {
  override readonly name = 'McpServerError';
}
