import { describe, expect, it } from 'vitest';
import { aReport } from '../../../test/builders/gate-report.ts';
import { mentioned, subjectsOf } from './subjects.ts';

const object = (kind: string, name: string) => ({ apiVersion: 'v1', kind, name });

describe('subjectsOf', () => {
  it('has names before kinds, sorted, each once', () => {
    const report = aReport({
      removed: [object('ClusterRole', 'web-reader'), object('Service', 'api')],
      added: [object('Service', 'Api')],
      droppedVersions: [
        {
          crd: 'peers.bgp.example',
          group: 'bgp.example',
          kind: 'Peer',
          versions: ['v1'],
          target: undefined,
          consumers: [],
        },
      ],
    });
    expect(subjectsOf(report)).toEqual([
      'Api',
      'web-reader',
      'ClusterRole',
      'Peer',
      'Service',
      'bgp.example',
      'peers.bgp.example',
    ]);
  });

  it('leaves out what is in every text', () => {
    expect(subjectsOf(aReport({ removed: [object('Job', 'x')] }))).toEqual(['Job']);
    expect(subjectsOf(aReport())).toEqual([]);
  });
});

describe('mentioned', () => {
  it('compares letters and digits only', () => {
    expect(
      mentioned(['web-reader', 'ClusterRole', 'Peer'], 'chore: drop the web_reader cluster role'),
    ).toEqual(['web-reader', 'ClusterRole']);
  });
});
