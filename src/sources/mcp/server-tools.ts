import type { Tool as McpTool } from '@modelcontextprotocol/client';
import type { Tool, ToolContext, ToolOutput } from '../../agent/tools/port.ts';
import type { AskPermission, ToolProblem } from '../port.ts';
import type { Connection } from './connection.ts';
import { definitionDigest, type Offer, offerOf } from './definition.ts';
import type { McpMetrics, ProblemReason } from './metrics.ts';
import { outputOf } from './result.ts';
import { type McpServerConfig, McpServerError } from './server-config.ts';
import { McpSession } from './session.ts';

export interface ServerTools {
  readonly tools: readonly Tool[];
  readonly problems: readonly ToolProblem[];
  close(): Promise<void>;
}

export interface ServerToolsMeans {
  open(config: McpServerConfig, signal: AbortSignal): Promise<Connection>;
  readonly ask: AskPermission;
  readonly metrics: McpMetrics;
  /** Of the run: ends with it. */
  readonly signal: AbortSignal;
}

/** What one server offers to a run. Rejects with the signal's reason only: a server that is down is a problem. */
export async function openServer(config: McpServerConfig, means: ServerToolsMeans): Promise<ServerTools> {
  const { signal, metrics } = means;
  const open = (ending: AbortSignal) => means.open(config, ending);
  let connection: Connection | undefined;
  try {
    connection = await open(signal);
    const listed = await connection.listTools(signal);
    metrics.connected(config.name, true);
    return offered(config, means, listed, new McpSession(connection, open, signal));
  } catch (error) {
    await connection?.close();
    signal.throwIfAborted();
    if (!(error instanceof McpServerError)) throw error;
    metrics.connected(config.name, false);
    return { tools: [], problems: [unreachable(config, error)], close: async () => undefined };
  }
}

function offered(
  config: McpServerConfig,
  means: ServerToolsMeans,
  listed: readonly McpTool[],
  session: McpSession,
): ServerTools {
  const tools = new Map<string, Tool>();
  const problems: ToolProblem[] = [];
  for (const name of config.allowedTools) {
    const decided = decide(config, name, listed, tools);
    if ('problem' in decided) {
      problems.push(decided.problem);
      means.metrics.withheld(config.name, decided.reason);
    } else tools.set(decided.offer.definition.name, toolOf(config, means, session, decided));
  }
  return { tools: [...tools.values()], problems, close: () => session.close() };
}

type Decided =
  | { readonly tool: McpTool; readonly offer: Extract<Offer, { readonly kind: 'Usable' }> }
  | { readonly reason: ProblemReason; readonly problem: ToolProblem };

/** Whether an allowed tool can be offered: it exists, is the one that was looked at, and can be told to a model. */
function decide(
  { name: server, pinned }: McpServerConfig,
  name: string,
  listed: readonly McpTool[],
  taken: ReadonlyMap<string, unknown>,
): Decided {
  const withheld = (reason: ProblemReason, why: string): Decided => ({
    reason,
    problem: {
      kind: 'ToolWithheld',
      message: `Tool ${name} of MCP server ${server} is not offered: ${why}`,
      note: `The tool ${name} of the MCP server ${server} cannot be used in this run. ${GO_ON}`,
    },
  });
  const [tool, ...doubles] = listed.filter((one) => one.name === name);
  if (tool === undefined)
    return withheld('NotFound', 'the server has none of that name; correct allowedTools');
  if (doubles.length > 0) return withheld('Unusable', 'the server has several of that name');
  const digest = definitionDigest(tool);
  const approved = pinned.get(name);
  if (approved !== undefined && approved !== digest)
    return withheld(
      'DefinitionChanged',
      `its definition has changed, from ${approved} to ${digest}; look at it and correct approvals`,
    );
  const offer = offerOf(server, tool);
  if (offer.kind === 'Unusable') return withheld('Unusable', offer.why);
  if (taken.has(offer.definition.name))
    return withheld('NameTaken', `another tool is already called ${offer.definition.name}`);
  return { tool, offer };
}

function toolOf(
  config: McpServerConfig,
  means: ServerToolsMeans,
  session: McpSession,
  { tool, offer }: Extract<Decided, { readonly tool: McpTool }>,
): Tool {
  const { name: server } = config;
  const { definition, fault } = offer;
  const asks = config.requireApproval.includes(tool.name);
  return {
    definition,
    // What people decide on stands alone: the calls before it are saved before the question.
    concurrent: !asks,
    parse(args) {
      const message = fault(args);
      return message === undefined ? { ok: true, args } : { ok: false, message };
    },
    async run(args, context): Promise<ToolOutput> {
      const given = isObject(args) ? args : {};
      const refusal = asks ? await refused(given, context) : undefined;
      if (refusal !== undefined) {
        means.metrics.call(server, 'refused');
        return { kind: 'Error', message: refusal };
      }
      try {
        const result = await session.call(tool, given, context.signal);
        means.metrics.call(server, result.isError === true ? 'error' : 'ok');
        return outputOf(result);
      } catch (error) {
        if (!(error instanceof McpServerError)) throw error;
        means.metrics.call(server, 'failed');
        return { kind: 'Error', message: `MCP server ${server}: ${error.message}. ${ADVICE}` };
      }
    },
  };

  async function refused(
    given: Readonly<Record<string, unknown>>,
    { signal, place }: ToolContext,
  ): Promise<string | undefined> {
    if (place === undefined)
      return `${definition.name} needs a person's approval, which cannot be asked for here.`;
    const permission = await means.ask({ tool: definition.name, arguments: given, place }, signal);
    return permission.kind === 'Approved' ? undefined : permission.message;
  }
}

const GO_ON = 'Go on without it, and say in your answer what is missing because of that.';
const ADVICE = 'Try once more at most; else go on without, and name this as missing in the answer.';

const unreachable = ({ name }: McpServerConfig, error: McpServerError): ToolProblem => ({
  kind: 'ToolServerUnavailable',
  message: error.message,
  // In our own words: what the server said is not for a system prompt.
  note: `The MCP server ${name} cannot be reached, so none of its tools are there. ${GO_ON}`,
});

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
