import { ANNOTATIONS } from '../../crds/meta.ts';
import { SECRET } from '../../kube/kinds.ts';
import type { VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import { SandboxUnavailableError } from '../port.ts';
import type { MachineLogin } from '../vm/connection.ts';

export interface LoginSource {
  readonly kube: Pick<KubeClient, 'get'>;
  /** Left out: from the Secret that the machine names. */
  readonly privateKey?: () => Promise<string>;
  readonly onSecret?: (value: string) => void;
}

/** Shorter lines of a key file are its frame. */
const SECRET_LINE = 32;

/**
 * How to log in to a machine of a pool, as the machine itself says: a pool that is gone, or says something else now,
 * changes nothing for the machines that it has made. `onSecret` is told of every line of the private key. Throws
 * `SandboxUnavailableError`, or KubeError.
 */
export async function loginOf(
  { kube, onSecret, privateKey: given }: LoginSource,
  { metadata }: VirtualMachineInstance,
): Promise<MachineLogin> {
  const { namespace = '', name = '', annotations } = metadata;
  const user = annotations?.[ANNOTATIONS.sshUser];
  const [secretName, key, ...rest] = annotations?.[ANNOTATIONS.sshKey]?.split('/') ?? [];
  if (user === undefined || !secretName || !key || rest.length > 0)
    throw new SandboxUnavailableError(`machine ${namespace}/${name} does not say how to log in to it`);
  const text = await (given?.() ?? readKey(kube, { namespace, name: secretName }, key, name));
  for (const line of text.split('\n').map((each) => each.trim()))
    if (line.length >= SECRET_LINE && !line.startsWith('-----')) onSecret?.(line);
  return { user, privateKey: `${text.trim()}\n` };
}

async function readKey(
  kube: Pick<KubeClient, 'get'>,
  ref: { readonly namespace: string; readonly name: string },
  key: string,
  machine: string,
): Promise<string> {
  const secret = await kube.get(SECRET, ref);
  const value = secret?.data?.[key];
  if (value !== undefined) return Buffer.from(value, 'base64').toString('utf8');
  const what = secret === undefined ? 'does not exist' : `has no key ${key}`;
  throw new SandboxUnavailableError(
    `Secret ${ref.namespace}/${ref.name} with the private key of machine ${machine} ${what}`,
  );
}
