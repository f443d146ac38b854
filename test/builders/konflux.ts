import type { Tool, ToolOutput } from '../../src/agent/tools/port.ts';
import type { HttpClient } from '../../src/http/client.ts';
import { toolToken } from '../../src/settings/tokens.ts';
import { type KonfluxAccess, openKonflux } from '../../src/sources/konflux/tools.ts';
import type { KeptObject } from '../fakes/kubearchive/state.ts';

export const SHA = '4f0c2f3b5a697887a1b2c3d4e5f60718293a4b5c';
export const NAMESPACE = 'team-tenant';
export const TOKEN = 'sha256~canary-konflux-token-0001';
export const BUILD_LABEL = 'pipelinesascode.tekton.dev/sha';
export const TEST_LABEL = 'pac.test.appstudio.openshift.io/sha';

export const scope = { project: 'group/app', iid: 42, sha: SHA };

/** A PipelineRun, or what else is said, of the run's commit. */
export function aRunObject(
  name: string,
  {
    kind = 'PipelineRun',
    uid = `uid-${name}`,
    labels = { [BUILD_LABEL]: SHA },
    ...rest
  }: {
    readonly kind?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly creationTimestamp?: string;
    readonly status?: object;
  } = {},
): KeptObject {
  const { creationTimestamp, status } = rest;
  return {
    apiVersion: 'tekton.dev/v1',
    kind,
    metadata: {
      name,
      namespace: NAMESPACE,
      uid,
      labels,
      ...(creationTimestamp ? { creationTimestamp } : {}),
    },
    ...(status === undefined ? {} : { status }),
  };
}

export const kubeconfigFor = (
  server: string,
  user: object = { token: TOKEN },
  cluster: object = {},
): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user }],
  });

/** Access to two servers on loopback, in NAMESPACE, with TOKEN. */
export function konfluxAt(http: HttpClient, server: string, kubearchiveUrl?: string): KonfluxAccess {
  const opened = openKonflux({
    http,
    clusterUrl: `${server}/ns/${NAMESPACE}`,
    ...(kubearchiveUrl === undefined ? {} : { kubearchiveUrl }),
    kubeconfig: toolToken(kubeconfigFor(server)),
  });
  if (opened.kind === 'Invalid') throw new Error(opened.message);
  return opened.access;
}

/** Calls a tool by its name as the registry does. */
export async function callTool(
  tools: readonly Tool[],
  name: string,
  args: Readonly<Record<string, unknown>>,
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<ToolOutput> {
  const tool = tools.find(({ definition }) => definition.name === name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  const parsed = tool.parse(args);
  return parsed.ok ? tool.run(parsed.args, { signal }) : { kind: 'Error', message: parsed.message };
}

/** All of a stream, as text, and what it says of itself afterwards. */
export async function readStream(
  output: ToolOutput,
): Promise<{ readonly text: string; readonly incomplete: string | undefined }> {
  if (output.kind !== 'Stream') throw new Error(`expected a stream, got ${JSON.stringify(output)}`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of output.chunks) chunks.push(chunk);
  return { text: Buffer.concat(chunks).toString(), incomplete: output.incomplete?.() };
}
