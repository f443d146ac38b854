import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../crds/meta.ts';
import type { VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import { machineSpec } from '../../kube/kubevirt/machine.ts';
import type { KubeClient } from '../../kube/port.ts';
import { SandboxUnavailableError } from '../port.ts';
import { loginOf } from './vmi-login.ts';

const BODY = 'b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2';
const KEY = `-----BEGIN OPENSSH PRIVATE KEY-----\r\n${BODY}\r\nshort=\n-----END OPENSSH PRIVATE KEY-----\n\n`;

const aMachine = (annotations: Readonly<Record<string, string>>): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'v', namespace: 'sandboxes', annotations },
  spec: machineSpec({ containerDisk: 'image', cpuCores: 1, memory: '1Gi' }, 'keys'),
});
const NAMED = aMachine({ [ANNOTATIONS.sshUser]: 'sandbox', [ANNOTATIONS.sshKey]: 'vm-key/id' });

/** A cluster that holds one Secret, or none. */
const withSecret = (data?: Readonly<Record<string, string>>) =>
  ({
    get: async (_kind: unknown, ref: { readonly namespace?: string; readonly name: string }) =>
      ref.namespace === 'sandboxes' && ref.name === 'vm-key' && data !== undefined
        ? { apiVersion: 'v1', kind: 'Secret', metadata: ref, data }
        : undefined,
  }) as unknown as Pick<KubeClient, 'get'>; // one kind is all that is asked for
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('the login of a machine', () => {
  it('is what the machine says of itself, and its lines are told as secrets', async () => {
    const secrets: string[] = [];
    const kube = withSecret({ id: base64(KEY) });
    const login = await loginOf({ kube, onSecret: (value) => secrets.push(value) }, NAMED);
    expect(login.user).toBe('sandbox');
    expect(login.privateKey.endsWith('-----END OPENSSH PRIVATE KEY-----\n')).toBe(true);
    expect(secrets).toEqual([BODY]);
  });

  it('may have its key from elsewhere, which is a secret as well', async () => {
    const secrets: string[] = [];
    const given = { privateKey: async () => KEY, onSecret: (value: string) => secrets.push(value) };
    const login = await loginOf({ kube: withSecret(), ...given }, NAMED);
    expect(login).toMatchObject({ user: 'sandbox', privateKey: expect.stringContaining(BODY) });
    expect(secrets).toEqual([BODY]);
  });

  it.each([
    ['there is no Secret', withSecret(), NAMED, 'Secret sandboxes/vm-key .* does not exist'],
    ['the Secret has no such key', withSecret({ other: '' }), NAMED, 'has no key id'],
    ['the machine says nothing', withSecret(), aMachine({}), 'does not say how to log in'],
    [
      'the machine says nonsense',
      withSecret(),
      aMachine({ [ANNOTATIONS.sshUser]: 'sandbox', [ANNOTATIONS.sshKey]: 'a/b/c' }),
      'does not say how to log in',
    ],
  ])('cannot be had when %s', async (_what, kube, machine, why) => {
    const login = loginOf({ kube }, machine);
    await expect(login).rejects.toThrow(new RegExp(why));
    await expect(login).rejects.toBeInstanceOf(SandboxUnavailableError);
  });
});
