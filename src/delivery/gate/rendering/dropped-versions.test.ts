import { describe, expect, it } from 'vitest';
import { droppedVersions, preferred } from './dropped-versions.ts';

describe('the version to move to', () => {
  it.each([
    [['v1alpha1', 'v1beta1', 'v1'], 'v1'],
    [['v1', 'v2beta1'], 'v1'],
    [['v1', 'v2'], 'v2'],
    [['v1beta1', 'v1beta2', 'v2alpha1'], 'v1beta2'],
    [['v2beta1', 'v10beta1'], 'v10beta1'],
    [['foo', 'v1alpha1'], 'v1alpha1'],
    [['foo', 'bar'], 'bar'],
    [[], undefined],
  ])('among %j is %s', (versions, target) => {
    expect(preferred(versions)).toBe(target);
  });
});

it('a definition that is gone serves nothing and has no target', () => {
  const crd = {
    ref: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      name: 'things.example.org',
    },
    value: {
      spec: {
        group: 'example.org',
        names: { kind: 'Thing' },
        versions: [{ name: 'v1' }, { name: 'v0', served: false }],
      },
    },
  };
  expect(droppedVersions([crd], [])).toEqual([
    { crd: 'things.example.org', group: 'example.org', kind: 'Thing', versions: ['v1'], target: undefined },
  ]);
  expect(droppedVersions([crd], [crd])).toEqual([]);
  expect(droppedVersions([], [crd])).toEqual([]);
});
