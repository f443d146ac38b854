import { type ChartArchive, type ChartSource, ChartUnavailableError } from '../port.ts';

/** Packed charts that are kept for the next who wants them. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/** Fetches each chart once: other applications want the same one, and so does every rendering of a repaired repository. */
export function keptCharts(source: ChartSource): ChartSource {
  const kept = new Map<string, Promise<ChartArchive>>();
  let keptBytes = 0;
  return {
    async fetch(reference, signal) {
      const key = JSON.stringify([reference.repository, reference.name, reference.version]);
      const known = kept.get(key);
      if (known !== undefined) return await known;
      const fetching = source.fetch(reference, signal);
      kept.set(key, fetching);
      try {
        const archive = await fetching;
        keptBytes += archive.bytes.length;
        if (keptBytes > MAX_KEPT_BYTES) {
          kept.clear();
          keptBytes = 0;
        }
        return archive;
      } catch (error) {
        // A refusal stays one; an abort is nobody's answer.
        if (!(error instanceof ChartUnavailableError)) kept.delete(key);
        throw error;
      }
    },
  };
}
