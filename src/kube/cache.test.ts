import { expect, test } from 'vitest';
import type { KubeObject } from '../crds/meta.ts';
import { keyOf, ObjectCache, refOfKey } from './cache.ts';

const anObject = (resourceVersion: string, uid = 'u1', name = 'a'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'ns', name, uid, resourceVersion },
});

const version = (cache: ObjectCache<KubeObject>) => cache.get('ns/a')?.metadata.resourceVersion;

test('versions of a uid only go forward, by number and not by text', () => {
  const cache = new ObjectCache();
  expect(cache.put(anObject('9'))?.type).toBe('Added');
  expect(cache.put(anObject('10'))?.type).toBe('Modified');
  expect(cache.put(anObject('9'))).toBeUndefined();
  expect(cache.put(anObject('10'))).toBeUndefined();
  expect(version(cache)).toBe('10');
});

test('a deleted object does not come back by a late event', () => {
  const cache = new ObjectCache();
  cache.put(anObject('1'));
  expect(cache.remove(anObject('5'))?.type).toBe('Deleted');
  expect(cache.put(anObject('3'))).toBeUndefined();
  expect(cache.size).toBe(0);
});

test('the deletion of a predecessor spares the successor of the same name', () => {
  const cache = new ObjectCache();
  cache.put(anObject('1', 'old'));
  expect(cache.put(anObject('7', 'new'))).toMatchObject({
    type: 'Modified',
    previous: { metadata: { uid: 'old' } },
  });
  expect(cache.remove(anObject('5', 'old'))).toBeUndefined();
  expect(cache.put(anObject('4', 'old'))).toBeUndefined();
  expect(cache.get('ns/a')?.metadata.uid).toBe('new');
});

test('a list makes the cache equal to it, and tells only the differences, deletions first', () => {
  const cache = new ObjectCache();
  for (const name of ['kept', 'changed', 'gone']) cache.put(anObject('1', name, name));
  const changes = cache.replace([
    anObject('1', 'kept', 'kept'),
    anObject('2', 'changed', 'changed'),
    anObject('3', 'new', 'new'),
  ]);
  expect(changes.map(({ type, key }) => `${type} ${key}`)).toEqual([
    'Deleted ns/gone',
    'Modified ns/changed',
    'Added ns/new',
  ]);
});

test('versions that are no numbers are taken as they come', () => {
  const cache = new ObjectCache();
  cache.put(anObject('b'));
  expect(cache.put(anObject('a'))?.type).toBe('Modified');
});

test('what is remembered of deleted objects is bounded', () => {
  const cache = new ObjectCache();
  for (let i = 0; i < 3_000; i++) cache.remove(anObject('1', `uid-${i}`));
  // The oldest are forgotten, the youngest are not.
  expect(cache.put(anObject('1', 'uid-0'))?.type).toBe('Added');
  expect(cache.put(anObject('2', 'uid-2999'))).toBeUndefined();
});

test('keys and references are two forms of one thing', () => {
  expect(refOfKey(keyOf(anObject('1')))).toEqual({ namespace: 'ns', name: 'a' });
  expect(refOfKey('node1')).toEqual({ name: 'node1' });
});
