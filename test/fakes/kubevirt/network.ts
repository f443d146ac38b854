import { randomInt } from 'node:crypto';
import { CommandError, run } from '../../../hack/cluster/run.ts';

/** The host's end of every cable. Guests know no other address and no route beyond it. */
export const HOST_ADDRESS = '10.212.255.254';

/**
 * A cable from the host into the network namespace of `pid`, and an address for its end there: the one that is
 * given, else one that nobody on this machine uses. A route to one address belongs to one cable, which settles
 * who gets it, also between processes.
 */
export async function plugIn(pid: number, link: string, wanted: string | undefined): Promise<string> {
  await run(['ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)]);
  await run(['ip', 'addr', 'add', `${HOST_ADDRESS}/32`, 'dev', link]);
  await run(['ip', 'link', 'set', link, 'up']);
  for (let attempt = 0; attempt < 50; attempt++) {
    const address = wanted ?? `10.212.${randomInt(0, 255)}.${randomInt(1, 255)}`;
    const route = ['ip', 'route', 'add', `${address}/32`, 'dev', link, 'src', HOST_ADDRESS];
    if (await succeeds(run(route))) return address;
    if (wanted !== undefined) throw new Error(`${wanted} is in use by another machine`);
  }
  throw new Error('no free address in 10.212.0.0/16');
}

/** The cable goes with its machine's namespace; a route may outlive it for a moment. */
export async function unplug(link: string): Promise<void> {
  await run(['ip', 'link', 'del', link]).catch(() => undefined);
}

async function succeeds(command: Promise<unknown>): Promise<boolean> {
  try {
    await command;
    return true;
  } catch (error) {
    if (error instanceof CommandError && error.stderr.includes('File exists')) return false;
    throw error;
  }
}
