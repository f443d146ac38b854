import { describe, expect, it } from 'vitest';
import { ChartUnavailableError } from '../port.ts';
import { keptCharts } from './kept-charts.ts';

const reference = { repository: 'https://charts.example.org', name: 'web', version: '1.0.0' };

function aSource(...answers: readonly (Uint8Array | Error)[]) {
  let asked = 0;
  const charts = keptCharts({
    async fetch(of) {
      const answer = answers[Math.min(asked, answers.length - 1)] ?? new Uint8Array();
      asked += 1;
      if (answer instanceof Error) throw answer;
      return { reference: of, bytes: answer, sha256: '' };
    },
  });
  return { charts, asked: () => asked };
}

describe('keptCharts', () => {
  it('asks once for a chart, also while it is on its way, and again for another version', async () => {
    const { charts, asked } = aSource(new Uint8Array(1));
    await Promise.all([charts.fetch(reference), charts.fetch(reference)]);
    await charts.fetch(reference);
    expect(asked()).toBe(1);
    await charts.fetch({ ...reference, version: '2.0.0' });
    expect(asked()).toBe(2);
  });

  it('keeps a refusal, and no abort', async () => {
    const refused = aSource(new ChartUnavailableError('no'));
    await expect(refused.charts.fetch(reference)).rejects.toThrow('no');
    await expect(refused.charts.fetch(reference)).rejects.toThrow('no');
    expect(refused.asked()).toBe(1);
    const aborted = aSource(new Error('stop'), new Uint8Array(1));
    await expect(aborted.charts.fetch(reference)).rejects.toThrow('stop');
    expect((await aborted.charts.fetch(reference)).bytes).toHaveLength(1);
  });

  it('lets go of what it keeps beyond its bound', async () => {
    const { charts, asked } = aSource(new Uint8Array(65 * 1024 * 1024));
    await charts.fetch(reference);
    await charts.fetch(reference);
    expect(asked()).toBe(2);
  });
});
