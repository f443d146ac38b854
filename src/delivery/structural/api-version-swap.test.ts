import { describe, expect, it } from 'vitest';
import { swapApiVersions, type VersionSwap } from './api-version-swap.ts';

const SWAP: VersionSwap = { group: 'metallb.io', kind: 'BGPPeer', versions: ['v1beta1'], target: 'v1beta2' };
const PEER = 'apiVersion: metallb.io/v1beta1\nkind: BGPPeer\nmetadata:\n  name: a\n';
const swapped = (text: string) => swapApiVersions(text, [SWAP]);

describe('swapApiVersions', () => {
  it.each([
    ['at the top of a document', PEER, [1]],
    ['in the second of two', `a: 1\n---\n${PEER}`, [3]],
    ['with kind above it', 'kind: BGPPeer\napiVersion: metallb.io/v1beta1\n', [2]],
    [
      'far from kind',
      'apiVersion: metallb.io/v1beta1\nmetadata:\n  name: a\n  kind: Other\nkind: BGPPeer\n',
      [1],
    ],
    ['in quotes with a remark', 'apiVersion: "metallb.io/v1beta1" # old\nkind: \'BGPPeer\'\n', [1]],
    ['in a list', 'items:\n  - apiVersion: metallb.io/v1beta1\n    kind: BGPPeer\n', [2]],
    ['in a list behind kind', 'items:\n  - kind: BGPPeer\n    apiVersion: metallb.io/v1beta1\n', [3]],
    ['in a block of text', `data:\n  peer.yaml: |\n${PEER.replaceAll(/^(?=.)/gm, '    ')}`, [3]],
    [
      'nested as a template',
      'spec:\n  template:\n    apiVersion: metallb.io/v1beta1\n    kind: BGPPeer\n',
      [3],
    ],
    ['with CRLF', PEER.replaceAll('\n', '\r\n'), [1]],
  ])('rewrites it %s, and nothing else', (_, text, lines) => {
    const outcome = swapped(text);
    expect(outcome).toEqual({ kind: 'Swapped', lines, text: text.replace('io/v1beta1', 'io/v1beta2') });
  });

  it.each([
    ['another kind of the group', 'apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\n'],
    [
      'the kind of another item',
      'items:\n  - apiVersion: metallb.io/v1beta1\n    kind: Pool\n  - kind: BGPPeer\n',
    ],
    ['a version that begins alike', 'apiVersion: metallb.io/v1beta10\nkind: BGPPeer\n'],
    ['a remark', '# apiVersion: metallb.io/v1beta1\n# kind: BGPPeer\n'],
    ['another document', `apiVersion: metallb.io/v1beta1\nkind: Pool\n---\nkind: BGPPeer\napiVersion: v1\n`],
  ])('leaves %s', (_, text) => {
    expect(swapped(text)).toEqual({ kind: 'Unchanged' });
  });

  it.each([
    ['braces', `${PEER}---\n{apiVersion: metallb.io/v1beta1, kind: BGPPeer}\n`],
    ['JSON', '{"apiVersion": "metallb.io/v1beta1",\n "kind": "BGPPeer"}\n'],
    ['no kind to be seen', 'apiVersion: metallb.io/v1beta1\nmetadata: {}\n'],
  ])('G10: refuses the whole file when one stays behind in %s', (_, text) => {
    expect(swapped(text)).toEqual({
      kind: 'Refused',
      reason: expect.stringMatching(/^line \d+ declares metallb.io/),
    });
  });
});
