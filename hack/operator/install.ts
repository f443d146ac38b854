import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';
import { GROUP } from '../../src/crds/meta.ts';

/** Whoever can run kubectl as an administrator: a cluster of ours, or a context of the user's. */
export interface Kubectl {
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
}

export interface Namespaces {
  readonly agents: string;
  readonly sandboxes: string;
}

export const DEFAULT_NAMESPACES: Namespaces = { agents: 'hummingbird', sandboxes: 'hummingbird-sandboxes' };

const config = fileURLToPath(new URL('../../config/', import.meta.url));

/** The cluster-wide part, which an administrator installs once: CustomResourceDefinitions and admission policies. */
export async function installDefinitions(cluster: Kubectl): Promise<void> {
  for (const folder of ['crd', 'admission'])
    await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '-k', `${config}${folder}`]);
  const names = ['agentruns', 'agentsessions', 'agentworkflows', 'sandboxpools'].map(
    (plural) => `crd/${plural}.${GROUP}`,
  );
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=30s', ...names]);
}

/** Namespaces, NetworkPolicy, ServiceAccount, Roles: the files of config/, under other namespace names where asked. */
export async function installNamespaces(
  cluster: Kubectl,
  namespaces: Namespaces = DEFAULT_NAMESPACES,
): Promise<void> {
  for (const file of ['namespaces/namespaces.yaml', 'network/networkpolicy.yaml', 'rbac/rbac.yaml'])
    await applyText(cluster, renamed(await readFile(`${config}${file}`, 'utf8'), namespaces));
}

export async function uninstall(cluster: Kubectl, namespaces: Namespaces): Promise<void> {
  await cluster.kubectl([
    'delete',
    'namespace',
    namespaces.agents,
    namespaces.sandboxes,
    '--ignore-not-found',
    '--wait=false',
  ]);
}

export async function apply(cluster: Kubectl, ...objects: readonly object[]): Promise<void> {
  await applyText(cluster, objects.map((object) => stringify(object)).join('---\n'));
}

async function applyText(cluster: Kubectl, yaml: string): Promise<void> {
  await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], yaml);
}

/** Replaces the two namespace names wherever an object, or a reference in it, carries them. */
function renamed(yaml: string, { agents, sandboxes }: Namespaces): string {
  const names = new Map([
    [DEFAULT_NAMESPACES.agents, agents],
    [DEFAULT_NAMESPACES.sandboxes, sandboxes],
  ]);
  return parseAllDocuments(yaml)
    .map((document) => stringify(rename(document.toJS(), names)))
    .join('---\n');
}

function rename(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return names.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => rename(item, names));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rename(item, names)]));
}
