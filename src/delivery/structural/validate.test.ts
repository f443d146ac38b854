import { describe, expect, it } from 'vitest';
import { readDocument } from './document.ts';
import type { Schema } from './schema.ts';
import { validateRestructure, validateValues } from './validate.ts';
import { dotted, type Value } from './value.ts';

const TARGET = 'stores.example.org/v1';
const SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['ref'],
      properties: {
        ref: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string' },
            kind: { type: 'string', default: 'Store', enum: ['Store', 'ClusterStore'] },
          },
        },
        interval: { type: 'string', default: '1h' },
        size: { type: 'integer' },
      },
    },
  },
};
const ORIGINAL: Value = {
  apiVersion: TARGET,
  kind: 'Secretive',
  metadata: { name: 'db', namespace: 'prod', labels: { a: 'b' } },
  spec: { storeName: 'vault', interval: '5m' },
};
const reshaped = (
  spec: Value,
  metadata: Value = { name: 'db', namespace: 'prod', labels: { a: 'b' } },
): Value => ({
  apiVersion: TARGET,
  kind: 'Secretive',
  metadata,
  spec,
});
const GOOD = reshaped({ ref: { name: 'vault' }, interval: '5m' });

const validated = (proposed: Value, original: Value = ORIGINAL) =>
  validateRestructure({ original, proposed, targetApiVersion: TARGET, schema: SCHEMA });
const reasons = (proposed: Value, original?: Value) => {
  const validation = validated(proposed, original);
  return validation.kind === 'Refused' ? validation.reasons : [];
};

describe('validateRestructure', () => {
  it('accepts a value that moved to where the new schema wants it', () => {
    expect(validated(GOOD)).toEqual({ kind: 'Accepted', lost: [], respelled: [] });
  });

  it.each<[string, Value, RegExp]>([
    [
      'another name',
      reshaped({ ref: { name: 'vault' } }, { name: 'db2', namespace: 'prod' }),
      /metadata.name may/,
    ],
    ['another namespace', reshaped({ ref: { name: 'vault' } }, { name: 'db' }), /metadata.namespace may/],
    ['another kind', { ...(GOOD as object), kind: 'Other' }, /kind may/],
    ['another apiVersion', { ...(GOOD as object), apiVersion: 'x/v2' }, /apiVersion has to be stores/],
  ])('G9: refuses %s', (_, proposed, reason) => {
    expect(reasons(proposed).some((one) => reason.test(one))).toBe(true);
  });

  it.each<[string, Value]>([
    ['a made-up value', { ref: { name: 'vault' }, interval: '5m', size: 3 }],
    ["the object's own name in a required reference", { ref: { name: 'db' }, interval: '5m' }],
    ['a value that still has its own place elsewhere', { ref: { name: '5m' }, interval: '5m' }],
    ['a label of the object', { ref: { name: 'b' }, interval: '5m' }],
    ['a value under metadata that was made up', { ref: { name: 'vault' }, interval: '6m' }],
  ])('G8: refuses %s', (_, spec) => {
    expect(reasons(reshaped(spec)).some((one) => /neither the original nor/.test(one))).toBe(true);
  });

  it('G8: takes what the schema itself says at that place, and nowhere else', () => {
    expect(reasons(reshaped({ ref: { name: 'vault', kind: 'ClusterStore' }, interval: '5m' }))).toEqual([]);
    expect(reasons(reshaped({ ref: { name: 'ClusterStore' }, interval: '5m' }))).not.toEqual([]);
  });

  it('G8: takes a default that the schema states further up', () => {
    const schema: Schema = {
      properties: {
        spec: {
          properties: { a: { type: 'object', default: { b: 'x' }, properties: { b: { type: 'string' } } } },
        },
      },
    };
    const document = { apiVersion: TARGET, kind: 'K', metadata: { name: 'n' }, spec: {} };
    const validation = validateRestructure({
      original: document,
      proposed: { ...document, spec: { a: { b: 'x' } } },
      targetApiVersion: TARGET,
      schema,
    });
    expect(validation.kind).toBe('Accepted');
  });

  it('refuses what does not fit, with every reason', () => {
    expect(reasons(reshaped({ storeName: 'vault', size: 'big' }))).toEqual([
      'spec.ref is required (object) and not there',
      'spec.size has to be integer, and is "big"',
      'spec.storeName is not a field of the new schema',
      'spec.size has "big", which neither the original nor the new schema has for it',
    ]);
  });

  it('lets a value change its type only, where the schema wants another', () => {
    const original = reshaped({ ref: { name: 'vault' }, size: '8080' });
    expect(reasons(reshaped({ ref: { name: 'vault' }, size: 8080 }), original)).toEqual([]);
    expect(reasons(reshaped({ ref: { name: 'vault' }, size: 8081 }), original)).not.toEqual([]);
  });

  it('names what did not come across and what came back with other capitals', () => {
    const original = reshaped({
      storeName: 'vault',
      token: 'x',
      copies: 2,
      ref: { name: 'a', kind: 'store' },
    });
    const validation = validated(reshaped({ ref: { name: 'a', kind: 'Store' } }), original);
    expect(validation).toMatchObject({ kind: 'Accepted' });
    if (validation.kind !== 'Accepted') return;
    expect(validation.lost.map(({ path }) => dotted(path))).toEqual([
      'spec.storeName',
      'spec.token',
      'spec.copies',
      'spec.ref.kind',
    ]);
    expect(validation.respelled).toEqual([{ path: ['spec', 'ref', 'kind'], from: 'store', to: 'Store' }]);
  });

  it('refuses an answer that is no mapping', () => {
    expect(validated(['a'])).toEqual({ kind: 'Refused', reasons: ['the answer is no mapping'] });
  });
});

describe('validateValues', () => {
  const schema: Schema = {
    type: 'object',
    additionalProperties: false,
    properties: {
      newName: { type: 'string' },
      replicas: { type: 'integer' },
      livenessProbe: { type: 'object' },
      mode: { type: 'string', enum: ['A', 'B'] },
    },
  };
  const read = (text: string): Value => {
    const reading = readDocument(text);
    if (reading.kind === 'Unreadable') throw new Error(reading.reason);
    return reading.value;
  };
  const ORIGINAL_VALUES = read(
    'oldName: mine\nreplicas: 3\nlivenessProbe:\n  tcpSocket: null\n  httpGet: {path: /x}\n',
  );
  const verdict = (proposed: Value, original: Value = ORIGINAL_VALUES) =>
    validateValues({ original, proposed, schema, defaults: {} });

  it('BR-56: a null that helm reads as "delete the default" survives', () => {
    const kept = {
      newName: 'mine',
      replicas: 3,
      livenessProbe: { tcpSocket: null, httpGet: { path: '/x' } },
    };
    expect(verdict(kept)).toMatchObject({ kind: 'Accepted', lost: [] });
    expect(verdict({ ...kept, livenessProbe: { httpGet: { path: '/x' } } })).toEqual({
      kind: 'Refused',
      reasons: ['livenessProbe.tcpSocket is still taken by the chart and has to stay null'],
    });
  });

  it.each<[string, Value, RegExp]>([
    [
      'is retuned',
      { newName: 'mine', replicas: 5, livenessProbe: { tcpSocket: null, httpGet: { path: '/x' } } },
      /replicas is still taken/,
    ],
    [
      'is dropped',
      { newName: 'mine', livenessProbe: { tcpSocket: null, httpGet: { path: '/x' } } },
      /replicas is still taken/,
    ],
    ['is tidied away', { newName: 'mine', replicas: 3 }, /livenessProbe.tcpSocket is still taken/],
  ])('G11: refuses when a setting that the chart still declares %s', (_, proposed, reason) => {
    const refusal = verdict(proposed);
    expect(refusal.kind === 'Refused' && refusal.reasons.some((one) => reason.test(one))).toBe(true);
  });

  it('G11: refuses a rename that lands on a key that is set already', () => {
    const original = { oldName: 'mine', newName: 'other' };
    expect(verdict({ newName: 'mine' }, original)).toMatchObject({ kind: 'Refused' });
    expect(verdict({ newName: 'other' }, original)).toMatchObject({
      kind: 'Accepted',
      lost: [{ path: ['oldName'], value: 'mine' }],
    });
  });

  it('lever 7: refuses to drop a value that one free key beside it could hold', () => {
    const rest = { replicas: 3, livenessProbe: { tcpSocket: null, httpGet: { path: '/x' } } };
    expect(verdict(rest)).toEqual({
      kind: 'Refused',
      reasons: [
        'oldName is dropped, and newName beside it is free: whether it is the same, a person has to say',
      ],
    });
    const guarded = { original: ORIGINAL_VALUES, proposed: rest, schema, defaults: {} };
    expect(validateValues({ ...guarded, guardDrops: false })).toMatchObject({ kind: 'Accepted' });
  });

  it('refuses to drop a value of which only the type is wrong', () => {
    const original = { replicas: '3', mode: 'A' };
    expect(verdict({ mode: 'A' }, original)).toMatchObject({
      kind: 'Refused',
      reasons: ['replicas is dropped, and only its type is wrong'],
    });
    expect(verdict({ mode: 'A', replicas: 3 }, original)).toMatchObject({ kind: 'Accepted' });
  });

  it('refuses what was made up, also beside a correct rename', () => {
    const more = {
      newName: 'mine',
      replicas: 3,
      mode: 'C',
      livenessProbe: { tcpSocket: null, httpGet: { path: '/x' } },
    };
    expect(verdict(more)).toMatchObject({ kind: 'Refused' });
  });
});
