import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeKubeconfig } from './kubeconfig.ts';
import { asKubeconfigData, createAuthority, createSigningKey } from './pki.ts';

/** Certificates, tokens and kubeconfigs of everybody who talks to the API server. All tokens are random. */
export async function writeCredentials(
  stateDir: string,
  api: { readonly server: string; readonly address: string },
  node: { readonly name: string; readonly address: string } | undefined,
): Promise<void> {
  const directory = join(stateDir, 'pki');
  const authority = await createAuthority(directory);
  const serviceNames = [
    'DNS:kubernetes',
    'DNS:kubernetes.default',
    'DNS:kubernetes.default.svc',
    'DNS:localhost',
  ];
  const addresses = new Set([api.address, '127.0.0.1', '10.96.0.1']);
  await authority.issue({
    name: 'apiserver',
    commonName: 'kube-apiserver',
    names: [...serviceNames, ...[...addresses].map((address) => `IP:${address}`)],
  });
  await authority.issue({
    name: 'kubelet-client',
    commonName: 'kube-apiserver',
    organization: 'system:masters',
  });
  if (node) {
    await authority.issue({
      name: 'kubelet',
      commonName: `system:node:${node.name}`,
      names: [`IP:${node.address}`],
    });
  }
  createSigningKey(directory);

  const users = [
    { file: 'admin', user: 'admin', groups: 'system:masters' },
    { file: 'controller-manager', user: 'system:kube-controller-manager', groups: '' },
    { file: 'scheduler', user: 'system:kube-scheduler', groups: '' },
    { file: 'firewall', user: 'kube-router', groups: '' },
    ...(node ? [{ file: 'kubelet', user: `system:node:${node.name}`, groups: 'system:nodes' }] : []),
  ].map((user) => ({ ...user, token: randomBytes(24).toString('base64url') }));
  writeFileSync(
    join(directory, 'tokens.csv'),
    users
      .map(({ token, user, groups }) => `${token},${user},${user}${groups ? `,${groups}` : ''}\n`)
      .join(''),
    { mode: 0o600 },
  );
  const caData = asKubeconfigData(authority.caFile);
  for (const { file, user, token } of users) {
    if (file === 'admin') writeFileSync(join(directory, 'admin.token'), token, { mode: 0o600 });
    const access = { clusterName: 'hummingbird', server: api.server, caData, user, token };
    writeKubeconfig(join(stateDir, `${file}.kubeconfig`), access);
  }
}
