import { describe, expect, it } from 'vitest';
import { SettingsError } from '../settings/operator.ts';
import { namespaceOf } from './run-cluster.ts';

const configOf = (namespace?: string): Parameters<typeof namespaceOf>[1] => ({
  path: 'hummingbird.yaml',
  settings: { sandbox: { namespace } } as Parameters<typeof namespaceOf>[1]['settings'],
});
const flags = (more: object) => ({
  namespace: undefined,
  context: undefined,
  kubeconfig: undefined,
  ...more,
});

describe('the namespace of a sandbox', () => {
  it.each([
    ['the flag’s, before all', { namespace: 'flag', context: 'dev' }, 'file', 'context', 'flag'],
    ['the named context’s, before the file’s', { context: 'dev' }, 'file', 'context', 'context'],
    ['the file’s, when no context was named', {}, 'file', 'context', 'file'],
    ['the file’s, with a kubeconfig', { kubeconfig: 'k' }, 'file', 'context', 'file'],
    ['the kubeconfig’s own, when nothing else is said', { kubeconfig: 'k' }, undefined, 'context', 'context'],
  ])('is %s', (_what, given, file, ofContext, namespace) => {
    expect(namespaceOf(flags(given), configOf(file), ofContext)).toBe(namespace);
  });

  it('must be in a context that is named', () => {
    const ask = () => namespaceOf(flags({ context: 'dev' }), configOf('file'), undefined);
    expect(ask).toThrow(SettingsError);
    expect(ask).toThrow(/the context dev names no namespace for sandboxes: give --namespace/);
  });

  it('is never that of the pod in which the command runs', () => {
    expect(() => namespaceOf(flags({}), configOf(), 'agents')).toThrow(
      /settings\.sandbox\.namespace in hummingbird/,
    );
  });
});
