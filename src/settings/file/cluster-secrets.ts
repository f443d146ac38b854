import { createHash } from 'node:crypto';
import { LABELS } from '../../crds/meta.ts';
import { type EnvNeed, namesFile } from '../environment.ts';
import type { SecretKeyRef } from '../secrets.ts';

/** Longest name that still has room for the tier and a digest, within the 253 characters of an object's name. */
const LONGEST = 200;

/**
 * The Secret that takes the place of a variable: GITLAB_TOKEN_RO of the tool tier is key `token` of
 * `tool-gitlab-token-ro`. The tier is part of the name, since a Secret has one tier and a variable may be named at
 * several. Deterministic, and two variables never share a name.
 */
export function clusterSecretRef({ name, tier, where }: EnvNeed): SecretKeyRef {
  const plain = name.toLowerCase().replaceAll('_', '-');
  const isName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(plain) && plain.length <= LONGEST;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 10);
  const readable = plain.slice(0, LONGEST).replace(/^-+|-+$/g, '');
  return {
    name: [tier, ...(isName ? [plain] : [readable, digest].filter((part) => part !== ''))].join('-'),
    key: namesFile({ where }) ? 'kubeconfig' : tier === 'model' ? 'apiKey' : 'token',
  };
}

/** Commands that make the Secrets from the environment, one for each. No value passes through an argument. */
export function secretCommands(needs: readonly EnvNeed[], namespace: string): readonly string[] {
  const commands = needs.flatMap((need) => {
    const { name, key } = clusterSecretRef(need);
    const at = `${name} -n ${namespace}`;
    const create = namesFile(need)
      ? `kubectl create secret generic ${at} --from-file=${key}="$${need.name}"`
      : `printf %s "$${need.name}" | kubectl create secret generic ${at} --from-file=${key}=/dev/stdin`;
    return [create, `kubectl label secret ${at} ${LABELS.tokenTier}=${need.tier}`];
  });
  return [...new Set(commands)];
}
