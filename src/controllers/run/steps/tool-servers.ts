import type { Tool } from '../../../agent/tools/port.ts';
import { BUILT_IN_TOOLS } from '../../../agent/tools/registry.ts';
import type { OpenTools } from '../../../sources/port.ts';
import type { StepContext } from '../step.ts';

export interface ServersInput {
  readonly openServers: () => Promise<OpenTools>;
  /** Tools that the run has besides. */
  readonly tools: readonly Tool[];
  readonly signal: AbortSignal;
}

/** A server that is not there costs the run its tools, and the model is told. */
export async function connectedServers(
  { deps, run }: StepContext,
  { openServers, tools, signal }: ServersInput,
): Promise<OpenTools> {
  try {
    const opened = withoutDoubles(await openServers(), tools);
    for (const { kind, message } of opened.problems)
      deps.events.record(
        run,
        'Warning',
        kind === 'ToolWithheld' ? 'ToolWithheld' : 'ToolServerUnavailable',
        message,
      );
    return opened;
  } catch (error) {
    // The loop sees by itself that it was ended.
    if (signal.aborted) return NO_SERVERS;
    const message = `The MCP servers of the workflow cannot be used: ${messageOf(error)}`;
    deps.events.record(run, 'Warning', 'ToolServerUnavailable', message);
    const note =
      'No MCP server of this workflow can be used in this run. Say in your answer what is missing because of that.';
    return { ...NO_SERVERS, problems: [{ kind: 'ToolServerUnavailable', message, note }] };
  }
}

/** A name is given once, and ours come first: a server must not pass for another tool. */
function withoutDoubles(opened: OpenTools, others: readonly Tool[]): OpenTools {
  const taken = new Set<string>([...BUILT_IN_TOOLS, ...others.map(({ definition }) => definition.name)]);
  const problems = [...opened.problems];
  const tools = opened.tools.filter(({ definition: { name } }) => {
    if (!taken.has(name)) {
      taken.add(name);
      return true;
    }
    const message = `Tool ${name} of an MCP server is not offered: another tool has this name; give the server another one`;
    const note = `One tool of an MCP server that would be called ${name} is not there. Say so in your answer if it is missed.`;
    problems.push({ kind: 'ToolWithheld', message, note });
    return false;
  });
  return { tools, problems, close: () => opened.close() };
}

const NO_SERVERS: OpenTools = { tools: [], problems: [], close: async () => undefined };

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
