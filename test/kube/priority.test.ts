import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import { createNamespace, deleteNamespace, sharedCluster } from '../cluster/shared.ts';

const SCHEMA = new URL('../../config/priority/flowschema.yaml', import.meta.url);
const ACCOUNT = 'hummingbird-operator';

let cluster: Cluster;
let namespace: string;
let agent: Agent;

beforeAll(async () => {
  cluster = await sharedCluster();
  namespace = await createNamespace(cluster);
  agent = new Agent({ connect: { ca: Buffer.from(cluster.caData, 'base64') } });
  await cluster.kubectl(['create', 'serviceaccount', ACCOUNT, '-n', namespace]);
});
afterAll(async () => {
  await agent?.close();
  await cluster?.kubectl(['delete', 'flowschema', namespace, '--ignore-not-found']);
  await deleteNamespace(cluster, namespace);
});

/** The schema as it is, under another name and for the namespace of this test. */
async function applySchema(): Promise<string> {
  const schema = parse(readFileSync(SCHEMA, 'utf8'));
  schema.metadata.name = namespace;
  const [rule] = schema.spec.rules;
  rule.subjects[0].serviceAccount.namespace = namespace;
  rule.resourceRules[0].namespaces = [namespace];
  await cluster.kubectl(['apply', '--server-side', '-f', '-'], stringify(schema));
  return (await cluster.kubectl(['get', 'flowschema', namespace, '-o', 'jsonpath={.metadata.uid}'])).trim();
}

it('config/priority: Leases of the operator have a queue of their own in the API server, its other requests do not', async () => {
  const uid = await applySchema();
  const token = await cluster.serviceAccountToken(namespace, ACCOUNT);
  /** By which schema the API server sorted a request, whatever it answers. */
  const schemaOf = async (method: 'GET' | 'PATCH', path: string, account = token) => {
    const { headers, body } = await request(`${cluster.server}${path}`, {
      ...{ method, dispatcher: agent },
      headers: { authorization: `Bearer ${account}`, 'content-type': 'application/json-patch+json' },
      ...(method === 'PATCH' ? { body: '[]' } : {}),
    });
    await body.dump();
    return headers['x-kubernetes-pf-flowschema-uid'];
  };
  const leases = (where: string) => `/apis/coordination.k8s.io/v1/namespaces/${where}/leases/replica-a`;
  await expect.poll(() => schemaOf('PATCH', leases(namespace)), { timeout: 60_000 }).toBe(uid);
  expect(await schemaOf('GET', leases(namespace))).toBe(uid);
  expect(await schemaOf('GET', `/api/v1/namespaces/${namespace}/pods`)).not.toBe(uid);
  expect(await schemaOf('PATCH', leases('default'))).not.toBe(uid);
  const other = await cluster.serviceAccountToken(namespace, 'default');
  expect(await schemaOf('PATCH', leases(namespace), other)).not.toBe(uid);
});
