import { describe, expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import { findConsumers } from './consumers.ts';

const DROPPED = { crd: 'peers.lb.io', group: 'lb.io', kind: 'Peer', versions: ['v1beta1'], target: 'v1' };

const consumers = async (text: string, path = 'a.yaml') =>
  (await findConsumers(aTree({ [path]: text }), [DROPPED])).versions[0]?.consumers;

describe('a manifest of a dropped version', () => {
  it.each([
    ['at the top', 'apiVersion: lb.io/v1beta1\nkind: Peer\nmetadata:\n  name: a\n', 1, 'Peer/a'],
    [
      'with keys in another order',
      'metadata:\n  labels:\n    name: no\n  name: a\nkind: Peer\napiVersion: lb.io/v1beta1\n',
      6,
      'Peer/a',
    ],
    ['quoted, with a comment', '"apiVersion": "lb.io/v1beta1" # old\n"kind": "Peer"\n', 1, 'Peer'],
    ['with CRLF', 'apiVersion: lb.io/v1beta1\r\nkind: Peer\r\nmetadata:\r\n  name: a\r\n', 1, 'Peer/a'],
    [
      'in a list',
      'items:\n  - kind: Pool\n    metadata: {name: x}\n  - apiVersion: lb.io/v1beta1\n    kind: Peer\n    metadata: {name: a}\n  - kind: Pool\n',
      4,
      'Peer/a',
    ],
    [
      'in a list whose dash is on its kind',
      'items:\n  - kind: Peer\n    apiVersion: lb.io/v1beta1\n',
      3,
      'Peer',
    ],
    [
      'in a text block',
      'data:\n  x: |\n    apiVersion: lb.io/v1beta1\n    kind: Peer\n    metadata:\n      name: a\n',
      3,
      'Peer/a',
    ],
    ['in one line', 'x: {apiVersion: lb.io/v1beta1, kind: Peer, metadata: {name: a}}\n', 1, 'Peer/a'],
    [
      'of a template',
      '{{- if .Values.x }}\napiVersion: lb.io/v1beta1\n{{- end }}\nkind: Peer\nmetadata:\n  name: {{ .Release.Name }}\n',
      2,
      'Peer/{{ .Release.Name }}',
    ],
    ['without a kind', 'apiVersion: lb.io/v1beta1\n', 1, 'Peer'],
  ])('%s is found', async (_what, text, line, object) => {
    expect(await consumers(text)).toEqual([{ path: 'a.yaml', line, object }]);
  });

  it('in JSON is found', async () => {
    expect(await consumers('{\n  "apiVersion": "lb.io/v1beta1",\n  "kind": "Peer"\n}\n', 'a.json')).toEqual([
      { path: 'a.json', line: 2, object: 'Peer' },
    ]);
  });

  it.each([
    ['another kind', 'apiVersion: lb.io/v1beta1\nkind: Pool\n'],
    ['another version', 'apiVersion: lb.io/v1beta10\nkind: Peer\n'],
    ['another group', 'apiVersion: other-lb.io/v1beta1\nkind: Peer\n'],
    ['a longer group', 'apiVersion: lb.io.example/v1beta1\nkind: Peer\n'],
    ['words in a comment', '# lb.io/v1beta1 was here\n'],
    ['another key', 'myapiVersion: lb.io/v1beta1\n'],
  ])('is not %s', async (_what, text) => {
    expect(await consumers(text)).toEqual([]);
  });

  it('in files that are not read is said to be unknown', async () => {
    const tree = aTree({
      'big.yaml': { kind: 'TooLarge', size: 7 },
      'link.yaml': { kind: 'Symlink', target: 'x' },
    });
    expect((await findConsumers(tree, [DROPPED])).unscanned).toEqual([
      'big.yaml has 7 bytes and was not searched for dropped API versions.',
    ]);
    expect(await findConsumers(tree, [])).toEqual({ versions: [], unscanned: [] });
  });

  it('is found in time in lines without an end, and the list of them is bounded', async () => {
    const long = `lb.io ${' '.repeat(2_000_000)}\napiVersion: lb.io/v1beta1${' '.repeat(100_000)}x\n`;
    expect(await consumers(long)).toHaveLength(1);
    const many = await findConsumers(aTree({ 'a.yaml': 'apiVersion: lb.io/v1beta1\n---\n'.repeat(500) }), [
      DROPPED,
    ]);
    expect(many.versions[0]?.consumers).toHaveLength(200);
    expect(many.unscanned).toEqual([expect.stringMatching(/^More than 200 manifests/)]);
  });
});
