import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { goCommand, requireGo } from './go.ts';
import { withLock } from './lock.ts';
import { cacheRoot, type Log } from './paths.ts';

const helmModule = 'helm.sh/helm/v3';
/** The line that Argo CD renders with. */
const helmVersion = '3.22.0';
/** Sum of the module; the go.sum in it has those of everything that it is built from. */
const helmSum = 'h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=';

/** What of the build decides the program's bytes: part of the key that an image with it is cached by. */
export const helmRecipe = [helmModule, helmVersion, helmSum, 'static'] as const;

/**
 * Builds helm from its Go module, once per version, and returns the static program's path. Needs Go and, the
 * first time, the Go module proxy. Throws when the module is not the one whose sum is known here.
 */
export async function ensureHelm(log: Log): Promise<string> {
  const home = join(cacheRoot(), `helm-${helmVersion}-${arch()}`);
  const path = join(home, 'helm');
  if (!existsSync(home)) {
    await withLock(`${home}.lock`, 'building helm', log, async () => {
      if (!existsSync(home)) await build(home, log);
    });
  }
  return path;
}

async function build(home: string, log: Log): Promise<void> {
  await requireGo('helm');
  const startedAt = performance.now();
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`;
  log(`building helm ${helmVersion} from its Go module, once: a minute or two on 2 cores, cached in ${home}`);
  const heartbeat = setInterval(() => log(`still building helm (${seconds()} so far)`), 30_000);
  const work = `${home}.building`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  try {
    const source = await checkedSource(work);
    const flags = ['-mod=readonly', '-trimpath', '-ldflags', linkerFlags(source)];
    await goCommand(['build', ...flags, '-o', join(work, 'helm'), './cmd/helm'], source);
  } finally {
    clearInterval(heartbeat);
  }
  renameSync(work, home);
  log(`built helm in ${seconds()}`);
}

/** The module's directory in Go's cache, which Go keeps read-only. */
async function checkedSource(cwd: string): Promise<string> {
  const told: unknown = JSON.parse(
    await goCommand(['mod', 'download', '-json', `${helmModule}@v${helmVersion}`], cwd),
  );
  if (typeof told !== 'object' || told === null || !('Dir' in told) || !('Sum' in told))
    throw new Error(`go mod download -json ${helmModule}: no Dir and Sum: is this Go 1.21 or later?`);
  if (told.Sum !== helmSum)
    throw new Error(
      `${helmModule} v${helmVersion} has the sum ${String(told.Sum)}, not ${helmSum}: it is not built; see what the module proxy serves`,
    );
  return String(told.Dir);
}

/** As the release is linked: without the Kubernetes version, charts are told that the cluster is years old. */
function linkerFlags(source: string): string {
  const minor = /^\s*k8s\.io\/client-go v0\.(\d+)\./m.exec(readFileSync(join(source, 'go.mod'), 'utf8'))?.[1];
  if (minor === undefined)
    throw new Error(`${helmModule} v${helmVersion}: no k8s.io/client-go in its go.mod`);
  const values = {
    'internal/version.version': `v${helmVersion}`,
    ...Object.fromEntries(
      ['pkg/chartutil', 'pkg/lint/rules'].flatMap((name) => [
        [`${name}.k8sVersionMajor`, '1'],
        [`${name}.k8sVersionMinor`, minor],
      ]),
    ),
  };
  return `-s -w ${Object.entries(values)
    .map(([name, value]) => `-X ${helmModule}/${name}=${value}`)
    .join(' ')}`;
}
