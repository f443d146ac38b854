import { describe, expect, it } from 'vitest';
import { backendOf, checkRunSettings, type RunSettings } from './run.ts';

const NOTHING: RunSettings = {
  ...{ event: undefined, eventFile: undefined, manifest: undefined, config: 'hummingbird.yaml' },
  ...{ workflow: undefined, sandbox: undefined, image: undefined, model: undefined, saveSession: undefined },
  ...{ resume: undefined, message: undefined, publish: 'none', kubeconfig: undefined, context: undefined },
  ...{ namespace: undefined, pool: undefined, quiet: false },
};

describe('the sandbox of a run', () => {
  it.each([
    ['podman, when nothing is said', {}, undefined, 'podman'],
    ['a pool’s pod, when a cluster is named', { context: 'dev' }, undefined, 'k8spool'],
    ['what the flag says', { context: 'dev', sandbox: 'podman' as const }, undefined, 'podman'],
    ['what the workflow says, whatever the flag', { sandbox: 'podman' as const }, 'none' as const, 'none'],
    [
      'a pod of its own, when the flag says so',
      { context: 'dev', sandbox: 'k8s' as const },
      undefined,
      'k8s',
    ],
    [
      'a machine of its own, when the flag says so',
      { context: 'dev', sandbox: 'kubevirt' as const },
      undefined,
      'kubevirt',
    ],
    ['a pool’s pod by a kubeconfig', { kubeconfig: 'file' }, 'k8spool' as const, 'k8spool'],
  ])('is %s', (_what, flags, wanted, backend) => {
    expect(backendOf({ ...NOTHING, ...flags }, wanted, {})).toBe(backend);
  });

  it.each(['k8s', 'k8spool', 'kubevirt', 'kubevirtpool'] as const)(
    'is never in a cluster that was not named: %s',
    (backend) => {
      expect(() => backendOf(NOTHING, backend, {})).toThrow(/needs --context or --kubeconfig/);
    },
  );

  it('may be in the cluster that the process itself runs in, when asked for', () => {
    const inPod = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };
    expect(backendOf({ ...NOTHING, sandbox: 'k8s' }, undefined, inPod)).toBe('k8s');
    expect(backendOf(NOTHING, undefined, inPod)).toBe('podman');
  });
});

describe('the flags of a run', () => {
  it.each([
    [{ event: '{}' }],
    [{ eventFile: 'x' }],
    [{ manifest: 'x' }],
    [{ resume: 'x', message: 'y' }],
    [{ resume: 'x', message: 'y', event: '{}' }],
  ])('go together: %j', (flags) => {
    expect(() => checkRunSettings({ ...NOTHING, ...flags })).not.toThrow();
  });

  it.each([
    [{}, /say what to run on/],
    [{ event: '{}', manifest: 'x' }, /only one of/],
    [{ resume: 'x' }, /needs --message/],
    [{ resume: 'x', message: ' ' }, /needs --message/],
  ])('do not: %j', (flags, message) => {
    expect(() => checkRunSettings({ ...NOTHING, ...flags })).toThrow(message);
  });
});
