import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePodman } from '../../hack/podman/podman.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podmanSandbox } from '../../src/sandbox/podman/podman.ts';
import { type Sandbox, SandboxUnavailableError } from '../../src/sandbox/port.ts';
import { sandboxConformance } from './conformance.ts';

const log = (line: string) => console.error(`podman: ${line}`);
const env = process.env;

function podman(...args: string[]): string {
  const { stdout, stderr, status } = spawnSync('podman', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`podman ${args.join(' ')}: ${stderr}`);
  return stdout;
}

const exists = (name: string) => spawnSync('podman', ['container', 'exists', name]).status === 0;

sandboxConformance('podman', async () => {
  const image = await ensurePodman(log);
  return {
    make: async () => podmanSandbox({ image, env, logger: silentLogger }),
    lose: async ({ ref }) => void podman('rm', '--force', '--time=0', ref.name),
    exists: async ({ ref }) => exists(ref.name),
    dispose: async () => undefined,
  };
});

describe('a container', () => {
  let image: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    image = await ensurePodman(log);
    sandbox = podmanSandbox({
      image,
      env: { ...env, GITLAB_TOKEN: 'glpat-canary-0001' },
      logger: silentLogger,
    });
    await sandbox.start();
  });
  afterAll(() => sandbox?.cleanup());

  const run = async (command: string) => {
    const { stdout, stderr } = await sandbox.exec(command);
    return Buffer.concat([stdout, stderr]).toString('utf8');
  };

  it('invariant 4: has no network but its own loopback', async () => {
    expect((await run("sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '")).trim()).toBe('lo');
    expect(await run('python3 -c "import socket; socket.create_connection((\'127.0.0.1\', 22), 2)"')).toMatch(
      /refused/,
    );
  });

  it('has no privileges, and the user 65532', async () => {
    expect(await run('id -u; id -g')).toBe('65532\n65532\n');
    const status = await run("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status");
    expect(status.replaceAll('\t', ' ')).toBe(
      'CapEff: 0000000000000000\nCapBnd: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n',
    );
  });

  it('invariant 4: has nothing of the host: no mount, no variable, a root that cannot be written', async () => {
    const { HostConfig } = JSON.parse(podman('inspect', sandbox.ref.name))[0];
    expect(HostConfig.Binds ?? []).toEqual([]);
    expect(HostConfig.NetworkMode).toBe('none');
    expect(HostConfig.PidsLimit).toBe(1024);
    const own = podman('inspect', '--format', '{{.Config.Env}}', sandbox.ref.name);
    expect(`${own}${await run('env; tr "\\0" "\\n" </proc/1/environ')}`).not.toContain('canary');
    expect(await run('touch /usr/x 2>&1')).toMatch(/Read-only file system/);
  });

  it('keeps no dead processes of killed commands', async () => {
    for (let i = 0; i < 3; i++) await sandbox.exec('sleep 66 & sleep 66 & sleep 66', { timeoutMs: 300 });
    // The first process collects them a moment later.
    await expect.poll(() => run("ps -eo stat= | grep -c '^Z' || true"), { timeout: 60_000 }).toBe('0\n');
  });

  it('tells exit codes of podman from those of commands', async () => {
    expect(await sandbox.exec('echo "Error: no such container" >&2; exit 125')).toMatchObject({
      kind: 'Exited',
      exitCode: 125,
    });
  });

  it('ends by itself when nobody is left to remove it', async () => {
    const short = podmanSandbox({ image, env, logger: silentLogger, maxLifetimeSeconds: 2 });
    await short.start();
    await expect.poll(() => exists(short.ref.name), { timeout: 60_000 }).toBe(false);
  });

  it('is not left behind when its start is aborted', async () => {
    const abort = new AbortController();
    const early = podmanSandbox({ image, env, logger: silentLogger });
    setTimeout(() => abort.abort(new Error('stopped')), 120);
    await expect(early.start(abort.signal)).rejects.toThrow('stopped');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(exists(early.ref.name)).toBe(false);
  });

  it('of an image that is not there is unavailable, in one sentence', async () => {
    const absent = podmanSandbox({ image: '127.0.0.1:9/absent:1', env, logger: silentLogger });
    await expect(absent.start()).rejects.toThrow(SandboxUnavailableError);
    await expect(absent.start()).rejects.toThrow(/127\.0\.0\.1:9\/absent:1 is not here and cannot be pulled/);
  });

  it('without podman is unavailable, with the command that installs it', async () => {
    const without = podmanSandbox({ image, env: { PATH: '/nonexistent' }, logger: silentLogger });
    await expect(without.start()).rejects.toThrow(SandboxUnavailableError);
    await expect(without.start()).rejects.toThrow(/apt-get install podman/);
    await without.cleanup();
  });

  it('is started with other flags where the ordinary ones do not work, and used with the same', async () => {
    const bin = mkdtempSync(join(tmpdir(), 'podman-'));
    const real = spawnSync('sh', ['-c', 'command -v podman'], { encoding: 'utf8' }).stdout.trim();
    const script = `#!/bin/sh\ncase "$1" in --cgroup-manager=cgroupfs | image) exec ${real} "$@" ;; esac\necho "Error: no crun" >&2; exit 126\n`;
    writeFileSync(join(bin, 'podman'), script, { mode: 0o755 });
    const words: string[] = [];
    const logger = { ...silentLogger, info: (_fields: object, message: string) => words.push(message) };
    const other = podmanSandbox({ image, env: { ...env, PATH: `${bin}:${env['PATH']}` }, logger });
    await other.start();
    expect(words.join()).toMatch(/runc and cgroupfs are used/);
    expect(await other.exec('echo here')).toMatchObject({ exitCode: 0, stdoutBytes: 5 });
    await other.cleanup();
    expect(exists(other.ref.name)).toBe(false);
    rmSync(bin, { recursive: true });
  });

  it('that cannot be started in any way says what podman said', async () => {
    const bin = mkdtempSync(join(tmpdir(), 'podman-'));
    const script =
      '#!/bin/sh\ncase "$*" in "image exists"*) exit 0 ;; *run*) echo "Error: no cgroups" >&2; exit 126 ;; esac\n';
    writeFileSync(join(bin, 'podman'), script, { mode: 0o755 });
    const broken = podmanSandbox({ image, env: { PATH: `${bin}:${env['PATH']}` }, logger: silentLogger });
    await expect(broken.start()).rejects.toThrow(/cannot start a container of .*: no cgroups/);
    rmSync(bin, { recursive: true });
  });
});
