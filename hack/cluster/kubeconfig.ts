import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';

/** Writes a kubeconfig with one cluster (verified by its CA) and one user (a bearer token), readable by its owner only. */
export function writeKubeconfig(
  file: string,
  access: {
    readonly clusterName: string;
    readonly server: string;
    /** Base64 of the CA's PEM. */
    readonly caData: string;
    readonly user: string;
    readonly token: string;
    readonly namespace?: string;
  },
): void {
  const { clusterName, server, caData, user, token, namespace } = access;
  const context = { cluster: clusterName, user, ...(namespace === undefined ? {} : { namespace }) };
  writeFileSync(
    file,
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: clusterName, cluster: { server, 'certificate-authority-data': caData } }],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: clusterName, context }],
      'current-context': clusterName,
    }),
    { mode: 0o600 },
  );
}
