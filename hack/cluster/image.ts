import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { ensureHelm, helmRecipe } from './helm.ts';
import { withLock } from './lock.ts';
import { pauseImage, sandboxImage } from './node.ts';
import { type ImageConfig, writeImage } from './oci.ts';
import { cacheRoot, type Log } from './paths.ts';
import { downloadPackages, treeEntries, unpackPackages } from './rootfs.ts';
import { run } from './run.ts';
import { fileBytes, type TarEntry } from './tar.ts';

/** Paths of the OCI archives that a cluster's node needs. */
export interface ImageArchives {
  readonly pause: string;
  readonly sandbox: string;
}

/** Raise when the steps below change what is in an image: the archives are cached by it and by the packages' versions. */
const recipe = '1';

/** What the sandbox offers: the tools an agent is told of, and the ordinary ones a shell script expects. */
const sandboxPackages = [
  ...['dash', 'bash', 'coreutils', 'util-linux', 'procps', 'tar', 'gzip', 'jq', 'yq', 'python3'],
  ...['grep', 'sed', 'findutils', 'diffutils', 'mawk'],
];

/** Packages that the others need for their installation scripts, which never run here. */
const installersOnly =
  /\/(debconf|dpkg|init-system-helpers|usrmerge|perl[^/_]*|libperl[^/_]*|lib[^/_]*-perl|udev)_[^/]*$/;

const sandboxConfig: ImageConfig = {
  User: '65532:65532',
  Env: ['PATH=/usr/local/bin:/usr/bin:/bin', 'HOME=/tmp', 'LANG=C.UTF-8'],
  WorkingDir: '/tmp',
  // The first process ends on SIGTERM and collects the processes that a killed command leaves to it.
  Cmd: ['/bin/sh', '-c', "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"],
};

/** Names are looked up in files only: there is no resolver and no network to ask. */
const accounts = {
  passwd: 'root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:65532:65532:sandbox:/tmp:/bin/sh\n',
  group: 'root:x:0:\nsandbox:x:65532:\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
};

/** Makes the images from Debian packages and helm (fetched and built once) and returns the cached archives. Needs root. */
export async function ensureImages(log: Log): Promise<ImageArchives> {
  const helm = await ensureHelm(log);
  const home = join(cacheRoot(), 'images');
  mkdirSync(home, { recursive: true });
  return withLock(join(home, 'lock'), 'making the images', log, async () => {
    const names = [...sandboxPackages, 'busybox-static'];
    const debsDir = join(home, `debs-${digest(JSON.stringify([names, arch()]))}`);
    const debs = await downloadPackages(debsDir, names, log);
    const key = digest(JSON.stringify([recipe, sandboxConfig, accounts, debs]));
    const pause = join(home, `pause-${key}.tar`);
    const sandbox = join(home, `sandbox-${digest(JSON.stringify([key, helmRecipe]))}.tar`);
    const paths = debs.map((deb) => join(debsDir, deb));
    const isBusybox = (path: string) => path.includes('/busybox-static_');
    const wanted = (path: string) => !isBusybox(path) && !installersOnly.test(path);
    const root = join(home, 'root');
    if (!existsSync(pause)) {
      await unpackPackages(root, paths.filter(isBusybox));
      writePause(pause, join(root, 'usr/bin/busybox'));
    }
    if (!existsSync(sandbox)) {
      const startedAt = performance.now();
      log('making the sandbox image, once (some 30 s)');
      await unpackPackages(root, paths.filter(wanted));
      await finishSandbox(root);
      copyFileSync(helm, join(root, 'usr/bin/helm'));
      chmodSync(join(root, 'usr/bin/helm'), 0o755);
      writeImage(sandbox, sandboxImage, sandboxConfig, treeEntries(root, unneeded));
      log(`made the sandbox image in ${Math.round((performance.now() - startedAt) / 1000)} s`);
    }
    rmSync(root, { recursive: true, force: true });
    return { pause, sandbox };
  });
}

/** The pause container only holds the pod's namespaces. */
function writePause(path: string, busybox: string): void {
  const files: TarEntry[] = [
    { kind: 'directory', name: 'bin', mode: 0o755 },
    { kind: 'file', name: 'bin/busybox', mode: 0o755, content: fileBytes(busybox) },
    { kind: 'symlink', name: 'bin/sleep', target: 'busybox' },
  ];
  writeImage(
    path,
    pauseImage,
    { Env: ['PATH=/bin'], Entrypoint: ['/bin/sleep', '2147483647'], User: '65535:65535' },
    files,
  );
}

/** What the packages' own scripts would have done, as far as a sandbox needs it. */
async function finishSandbox(root: string): Promise<void> {
  const link = (name: string, target: string) => {
    if (lstatSync(join(root, name), { throwIfNoEntry: false }) === undefined)
      symlinkSync(target, join(root, name));
  };
  link('usr/bin/awk', 'mawk');
  link('usr/bin/sh', 'dash');
  for (const directory of ['etc', 'tmp', 'proc', 'sys', 'dev', 'root'])
    mkdirSync(join(root, directory), { recursive: true });
  for (const [name, content] of Object.entries(accounts)) writeFileSync(join(root, 'etc', name), content);
  // A read-only root never gets compiled Python, which doubles the start of every script; hashes instead of
  // times in the compiled files keep the image reproducible.
  const compile = ['/usr/bin/python3', '-m', 'compileall', '-q', '--invalidation-mode', 'unchecked-hash'];
  const libraries = readdirSync(join(root, 'usr/lib')).filter((name) => name.startsWith('python3'));
  await run(['chroot', root, 'nice', ...compile, ...libraries.map((name) => `/usr/lib/${name}`)], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', PYTHONDONTWRITEBYTECODE: undefined, PYTHONHASHSEED: '0' },
  });
  const tmp = join(root, 'tmp');
  rmSync(tmp, { recursive: true, force: true });
  mkdirSync(tmp);
  await run(['chmod', '1777', tmp]);
}

/** Documentation, translations and what only an installation needs. */
function unneeded(path: string): boolean {
  return /^(usr\/share\/(doc|man|locale|info|lintian|bash-completion|zsh|bug|pixmaps|menu)|var\/(lib|cache|log)|usr\/lib\/systemd|usr\/lib\/udev|usr\/sbin\/.*)(\/|$)/.test(
    path,
  );
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
