import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const mountPoint = '/sys/fs/cgroup';

/** Makes the cgroup in every hierarchy, so that kubelet can hang its pods below it; `path` begins with a slash. */
export function createCgroup(path: string): void {
  for (const root of hierarchies()) {
    const directory = join(root, path);
    mkdirSync(directory, { recursive: true });
    // Version 1: a new cpuset is empty and refuses processes until it has its parent's processors and memory.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const own = join(directory, file);
      if (isVersion1Cpuset(root) && existsSync(own)) writeFileSync(own, readFileSync(join(root, file)));
    }
    // Version 2: controllers are handed down one level at a time.
    const available = join(root, 'cgroup.controllers');
    if (existsSync(available)) {
      const all = readFileSync(available, 'utf8').split(/\s+/).filter(Boolean);
      for (const parent of [root, directory]) handDown(parent, all);
    }
  }
}

/** Removes it with everything below; its processes must have ended (the kernel takes a moment to notice). */
export async function removeCgroup(path: string): Promise<void> {
  for (const root of hierarchies()) {
    for (let attempt = 0; existsSync(join(root, path)); attempt += 1) {
      try {
        removeTree(join(root, path));
      } catch (error) {
        if (attempt >= 100) throw error;
        await sleep(50);
      }
    }
  }
}

/** One directory per version 1 controller, or the only one of version 2; symbolic links such as "cpu" count once. */
function hierarchies(): readonly string[] {
  if (existsSync(join(mountPoint, 'cgroup.controllers'))) return [mountPoint];
  return readdirSync(mountPoint, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(mountPoint, entry.name))
    .filter((directory) => existsSync(join(directory, 'cgroup.procs')));
}

function isVersion1Cpuset(root: string): boolean {
  return existsSync(join(root, 'cpuset.cpus')) && !existsSync(join(root, 'cgroup.controllers'));
}

function handDown(parent: string, controllers: readonly string[]): void {
  for (const controller of controllers) {
    try {
      writeFileSync(join(parent, 'cgroup.subtree_control'), `+${controller}`);
    } catch {
      // Some controllers cannot be delegated here; kubelet names the one it misses.
    }
  }
}

function removeTree(directory: string): void {
  for (const entry of readdirSync(directory)) {
    if (statSync(join(directory, entry)).isDirectory()) removeTree(join(directory, entry));
  }
  rmdirSync(directory);
}
