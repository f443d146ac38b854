import { isIP } from 'node:net';
import { join } from 'node:path';
import { SSH_PORT } from '../../kube/kubevirt/machine.ts';

/** The machine as ssh is told of it. */
export interface SshTarget {
  /** An IP address. */
  readonly address: string;
  readonly user: string;
  /** Under which its host key is kept: the machine's uid, since addresses are used again. */
  readonly alias: string;
}

/** What ssh reads and makes, in a folder of our own that holds nothing else. */
export interface SshFiles {
  readonly key: string;
  readonly knownHosts: string;
  readonly socket: string;
}

export const sshFiles = (folder: string): SshFiles => ({
  key: join(folder, 'key'),
  knownHosts: join(folder, 'known_hosts'),
  // A socket's path holds some 100 bytes, and ssh adds 17 of its own while it makes it.
  socket: join(folder, 's'),
});

/**
 * Words for the one connection that all commands share. No agent, no configuration of the user's or the machine's,
 * no forwarding, no question asked. `pinned`: the host key is known and must be the same; else what comes is kept.
 * Throws for what is no IP address.
 */
export function connectArgs(
  target: SshTarget,
  files: SshFiles,
  { pinned, log, command }: { readonly pinned: boolean; readonly log: string; readonly command: string },
): readonly string[] {
  return [
    ...common(files.socket, log),
    ...options({
      ControlMaster: 'yes',
      ControlPersist: 'no',
      ConnectTimeout: '5',
      ServerAliveInterval: '5',
      ServerAliveCountMax: '3',
      IdentityFile: files.key,
      IdentitiesOnly: 'yes',
      IdentityAgent: 'none',
      PreferredAuthentications: 'publickey',
      HostKeyAlias: target.alias,
      UserKnownHostsFile: files.knownHosts,
      GlobalKnownHostsFile: '/dev/null',
      HashKnownHosts: 'no',
      UpdateHostKeys: 'no',
      CheckHostIP: 'no',
      StrictHostKeyChecking: pinned ? 'yes' : 'accept-new',
      // The fast one where the processor helps, which is where it matters.
      Ciphers: '^aes128-gcm@openssh.com',
    }),
    ...destination(target),
    command,
  ];
}

/**
 * Words for one command over that connection. Without it ssh would open one of its own, to whoever has the address
 * by then: it may not.
 */
export function sessionArgs(
  target: SshTarget,
  files: SshFiles,
  { log, command }: { readonly log: string; readonly command: string },
): readonly string[] {
  return [
    ...common(files.socket, log),
    ...options({ ControlMaster: 'no', ProxyCommand: 'false', IdentityFile: 'none' }),
    ...destination(target),
    command,
  ];
}

/** One string for the login shell on the other side, which takes it apart into the same words. */
export function remoteCommand(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}

/** Its own complaints go to a file: stderr is the command's alone. */
function common(socket: string, log: string): readonly string[] {
  return [
    ...['-F', '/dev/null', '-T', '-E', log],
    ...options({
      BatchMode: 'yes',
      LogLevel: 'ERROR',
      ControlPath: socket,
      ClearAllForwardings: 'yes',
      ForwardAgent: 'no',
      EscapeChar: 'none',
    }),
  ];
}

function destination({ address, user }: SshTarget): readonly string[] {
  if (isIP(address) === 0) throw new Error(`"${address}" is no IP address`);
  return ['-p', String(SSH_PORT), '-l', user, '--', address];
}

const options = (values: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
