import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { inject } from 'vitest';
import '../cluster/setup.ts';

export const ROOT = join(import.meta.dirname, '../..');

export interface Outcome {
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs kubectl as administrator of the test cluster; a refusal is a value. */
export function tryKubectl(args: readonly string[], input?: unknown): Promise<Outcome> {
  const { kubectlPath, kubeconfigPath } = inject('cluster');
  return new Promise((resolve) => {
    const child = execFile(
      kubectlPath,
      ['--kubeconfig', kubeconfigPath, ...args],
      { maxBuffer: 32 * 1024 * 1024, timeout: 60_000 },
      (error, stdout, stderr) => resolve({ ok: error === null, stdout, stderr }),
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input === undefined ? '' : typeof input === 'string' ? input : JSON.stringify(input));
  });
}

/** Its stdout; throws what kubectl said. */
export async function kubectl(args: readonly string[], input?: unknown): Promise<string> {
  const { ok, stdout, stderr } = await tryKubectl(args, input);
  if (!ok) throw new Error(`kubectl ${args.join(' ')}: ${stderr || stdout}`);
  return stdout;
}

/** Two namespaces of this test file's own, in place of the two of the samples. */
export interface Namespaces {
  readonly agents: string;
  readonly sandboxes: string;
}

/** Applies the CRDs and makes the namespaces. */
export async function prepare(): Promise<Namespaces> {
  await kubectl(['apply', '--server-side', '--force-conflicts', '-k', join(ROOT, 'config/crd')]);
  const ours = ['customresourcedefinitions', '-l', 'app.kubernetes.io/part-of=hummingbird-operator'];
  await kubectl(['wait', '--for=condition=Established', '--timeout=30s', ...ours]);
  const agents = `crds-${randomBytes(4).toString('hex')}`;
  const namespaces = { agents, sandboxes: `${agents}-sandboxes` };
  for (const name of [namespaces.agents, namespaces.sandboxes]) await kubectl(['create', 'namespace', name]);
  return namespaces;
}

export async function cleanUp({ agents, sandboxes }: Namespaces): Promise<void> {
  await kubectl(['delete', 'namespace', agents, sandboxes, '--wait=false', '--ignore-not-found']);
}
