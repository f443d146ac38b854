import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';

const CONFIG = fileURLToPath(new URL('../../config', import.meta.url));

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata?: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly Rule[];
  readonly roleRef?: { readonly kind: string };
}

/** Every object of a folder of `config`. */
function manifests(folder: string): readonly Manifest[] {
  const files = readdirSync(join(CONFIG, folder)).filter((name) => /\.ya?ml$/.test(name));
  return files
    .filter((name) => name !== 'kustomization.yaml')
    .flatMap((name) => parseAllDocuments(readFileSync(join(CONFIG, folder, name), 'utf8')))
    .map((document): Manifest => document.toJS())
    .filter((manifest) => manifest !== null);
}

describe('what the operator may do at run time', () => {
  const all = ['rbac', 'configuration-file', 'manager', 'default'].flatMap(manifests);
  const rules = all.flatMap((manifest) => (manifest.kind === 'Role' ? (manifest.rules ?? []) : []));

  it('invariant 6: lies in Roles of namespaces alone, never in the cluster', () => {
    expect(all.filter(({ kind }) => kind === 'Role').length).toBeGreaterThan(0);
    expect(all.map(({ kind }) => kind).filter((kind) => kind.startsWith('Cluster'))).toEqual([]);
    for (const { kind, metadata, roleRef } of all) {
      if (kind !== 'Role' && kind !== 'RoleBinding') continue;
      expect(metadata?.namespace, metadata?.name).toBeTypeOf('string');
      if (kind === 'RoleBinding') expect(roleRef?.kind).toBe('Role');
    }
  });

  it('invariant 6: names everything, and gives away no right to others', () => {
    for (const rule of rules) {
      for (const words of [rule.apiGroups, rule.resources, rule.verbs]) expect(words).not.toContain('*');
      expect(rule.verbs.filter((verb) => ['bind', 'escalate', 'impersonate'].includes(verb))).toEqual([]);
      expect(rule.apiGroups).not.toContain('rbac.authorization.k8s.io');
      expect(rule.apiGroups).not.toContain('apiextensions.k8s.io');
    }
  });

  it('invariant 6: lists no Secrets, so that one that nobody names is never seen', () => {
    const secrets = rules.filter(({ resources }) => resources.includes('secrets'));
    expect(secrets.length).toBeGreaterThan(0);
    for (const { verbs } of secrets) expect(verbs.filter((verb) => /list|watch/.test(verb))).toEqual([]);
  });
});
