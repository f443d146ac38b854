import type { Tool, ToolOutput } from '../../src/agent/tools/port.ts';
import { createHttpClient } from '../../src/http/client.ts';
import { toolToken } from '../../src/settings/tokens.ts';
import { gitlabTools } from '../../src/sources/gitlab/tools.ts';
import { aScene } from '../fakes/gitlab/scene.ts';

/** A scene on GitLab's stand-in, and the tools of a run on its merge request, which read as a Reporter. */
export async function gitlabToolsOn(options: { readonly allowedProjects?: readonly string[] } = {}) {
  const scene = await aScene();
  const http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
  const { token } = scene.state.projectBot(scene.project, { scopes: ['read_api'], level: 20 });
  const scope = { project: 'group/app', iid: 1, sha: scene.mergeRequest.sha, ...options };
  const toolsFor = (value: string): readonly Tool[] =>
    gitlabTools({ http, baseUrl: scene.gitlab.url, token: toolToken(value) }, scope);
  let tools = toolsFor(token);
  return {
    ...scene,
    token,
    /** From now on with another token. */
    readAs(value: string): void {
      tools = toolsFor(value);
    },
    async call(name: string, args: unknown): Promise<ToolOutput> {
      const tool = tools.find(({ definition }) => definition.name === name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      const parsed = tool.parse(args);
      if (!parsed.ok) throw new Error(parsed.message);
      return tool.run(parsed.args, { signal: AbortSignal.timeout(60_000) });
    },
    async stop(): Promise<void> {
      await http.close();
      await scene.gitlab.stop();
    },
  };
}

export interface ReadStream {
  readonly bytes: Buffer;
  readonly text: string;
  readonly incomplete: string | undefined;
  readonly note: string | undefined;
}

/** A streamed output to its end. Throws for any other. */
export async function readStream(output: ToolOutput): Promise<ReadStream> {
  if (output.kind !== 'Stream') throw new Error(JSON.stringify(output));
  const parts: Uint8Array[] = [];
  for await (const chunk of output.chunks) parts.push(chunk);
  const bytes = Buffer.concat(parts);
  return { bytes, text: bytes.toString(), incomplete: output.incomplete?.(), note: output.note?.() };
}
