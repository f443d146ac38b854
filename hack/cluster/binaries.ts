import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { goCommand as go, requireGo } from './go.ts';
import { withLock } from './lock.ts';
import { cacheRoot, type Log } from './paths.ts';

const kubernetesVersion = '1.36.3';
/** The staging repositories of Kubernetes 1.x.y are published as modules v0.x.y. */
const stagingVersion = '0.36.3';
const kubeRouterVersion = '2.1.0';

const kubernetesCommands = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kubectl',
] as const;

export type BinaryName = (typeof kubernetesCommands)[number] | 'etcd' | 'kube-router';

/** Absolute path of each program. */
export type Binaries = Readonly<Record<BinaryName, string>>;

/**
 * Builds the cluster's programs from their Go modules, once per version, and returns where they are.
 * Safe to call from several processes at once. Needs Go and, the first time, the Go module proxy.
 */
export async function ensureBinaries(log: Log): Promise<Binaries> {
  const home = join(
    cacheRoot(),
    `kubernetes-${kubernetesVersion}-kube-router-${kubeRouterVersion}-${arch()}`,
  );
  if (!existsSync(home)) {
    await withLock(`${home}.lock`, 'building the Kubernetes programs', log, async () => {
      if (!existsSync(home)) await build(home, log);
    });
  }
  return {
    'kube-apiserver': join(home, 'bin/kube-apiserver'),
    'kube-controller-manager': join(home, 'bin/kube-controller-manager'),
    'kube-scheduler': join(home, 'bin/kube-scheduler'),
    kubelet: join(home, 'bin/kubelet'),
    kubectl: join(home, 'bin/kubectl'),
    etcd: join(home, 'bin/etcd'),
    'kube-router': join(home, 'bin/kube-router'),
  };
}

async function build(home: string, log: Log): Promise<void> {
  await requireGo('Kubernetes');
  // No other builder holds the lock, so what is left here is of one that died.
  const work = `${home}.building`;
  rmSync(work, { recursive: true, force: true });
  const bin = join(work, 'bin');
  mkdirSync(bin, { recursive: true });
  const total = kubernetesCommands.length + 2;
  const startedAt = performance.now();
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s so far`;
  let count = 0;
  const step = async (name: BinaryName, command: () => Promise<unknown>) => {
    count += 1;
    log(`building ${name} (${count} of ${total}, ${seconds()})`);
    // The API server alone takes minutes; silence for longer than this looks like a hang.
    const heartbeat = setInterval(() => log(`still building ${name} (${seconds()})`), 30_000);
    await command().finally(() => clearInterval(heartbeat));
  };

  log(
    `building Kubernetes ${kubernetesVersion} from its Go modules, once: some 6 minutes on 2 cores, then cached in ${home}`,
  );
  const source = join(work, 'source');
  await writeModule(source);
  const version = 'k8s.io/component-base/version';
  const [major, minor] = kubernetesVersion.split('.');
  const flags = `-s -w -X ${version}.gitVersion=v${kubernetesVersion} -X ${version}.gitMajor=${major} -X ${version}.gitMinor=${minor}`;
  const compile = (name: BinaryName, linker: string, module: string) =>
    step(name, () => go(['build', '-trimpath', '-ldflags', linker, '-o', join(bin, name), module], source));
  for (const name of kubernetesCommands) await compile(name, flags, `k8s.io/kubernetes/cmd/${name}`);
  await compile('etcd', '-s -w', 'go.etcd.io/etcd/server/v3');
  const kubeRouter = `github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v${kubeRouterVersion}`;
  await step('kube-router', () =>
    go(['install', '-trimpath', '-ldflags', '-s -w', kubeRouter], work, { GOBIN: bin }),
  );
  rmSync(source, { recursive: true, force: true });
  renameSync(work, home);
  log(`built ${total} programs in ${seconds().replace(' so far', '')}`);
}

/**
 * A module that requires Kubernetes and replaces each staging repository, which Kubernetes itself takes from
 * directories of its own tree, with the module of the same release.
 */
async function writeModule(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const head = 'module cluster.test/controlplane\ngo 1.26.0\n';
  writeFileSync(join(directory, 'go.mod'), head);
  const downloaded: unknown = JSON.parse(
    await go(['mod', 'download', '-json', `k8s.io/kubernetes@v${kubernetesVersion}`], directory),
  );
  if (typeof downloaded !== 'object' || downloaded === null || !('GoMod' in downloaded)) {
    throw new Error('go mod download -json named no GoMod file: is this Go 1.21 or later?');
  }
  const goMod = readFileSync(String(downloaded.GoMod), 'utf8');
  const staged = [...goMod.matchAll(/^\s*(k8s\.io\/[a-z0-9-]+) => \.\/staging/gm)].map((match) => match[1]);
  if (staged.length === 0)
    throw new Error(`k8s.io/kubernetes v${kubernetesVersion}: no staging repositories in its go.mod`);
  const replaces = staged.map((name) => `\t${name} => ${name} v${stagingVersion}\n`).join('');
  writeFileSync(
    join(directory, 'go.mod'),
    `${head}require k8s.io/kubernetes v${kubernetesVersion}\nreplace (\n${replaces})\n`,
  );
  const imports = [
    ...kubernetesCommands.map((name) => `k8s.io/kubernetes/cmd/${name}`),
    'go.etcd.io/etcd/server/v3',
  ];
  writeFileSync(
    join(directory, 'tools.go'),
    `//go:build tools\n\npackage tools\n\nimport (\n${imports.map((path) => `\t_ "${path}"\n`).join('')})\n`,
  );
  // -e: test dependencies of some modules are not published; what is built here does not need them.
  await go(['mod', 'tidy', '-e'], directory);
}
