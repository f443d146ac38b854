// A process of its own, so that what its memory shows is the tool's: a page of 80 MB goes through the tool registry into
// a file, item by item or (as a tool that parses the whole would) as one text. Arguments: url streamed|buffered. Prints
// one JSON object.
import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import type { Tool } from '../src/agent/tools/port.ts';
import { createRegistry } from '../src/agent/tools/registry.ts';
import { createHttpClient } from '../src/http/client.ts';
import { konfluxTools } from '../src/sources/konflux/tools.ts';
import { konfluxAt, NAMESPACE, SHA, scope, TOKEN } from '../test/builders/konflux.ts';
import { startLocalSandbox } from '../test/fakes/local-sandbox.ts';
import { ITEMS, PAGE_BYTES, WARM_UP_ITEMS, WARM_UP_SHA } from './page80.ts';

export interface PageReport {
  readonly items: number;
  readonly bytes: number;
  /** Highest RSS meanwhile over what the process had when everything was loaded and had run once. */
  readonly growthBytes: number;
  readonly milliseconds: number;
}

const [url = '', variant = ''] = process.argv.slice(2);
const List = z.object({ items: z.array(z.unknown()) });
const NAME = 'konflux_list_pipelineruns';
const http = createHttpClient();
const sandbox = await startLocalSandbox();
await sandbox.start();

await page(WARM_UP_SHA, WARM_UP_ITEMS);
// What waits to be collected is nobody's need: its room is used again.
globalThis.gc?.();
const before = process.memoryUsage.rss();
// Sets VmHWM, the peak that the kernel keeps, to what is: proc(5).
writeFileSync('/proc/self/clear_refs', '5');
const begun = performance.now();
const bytes = await page(SHA, ITEMS);
const milliseconds = performance.now() - begun;
const report: PageReport = { items: ITEMS, bytes, growthBytes: peakBytes() - before, milliseconds };
console.log(JSON.stringify(report));
await sandbox.cleanup();
await http.close();

function peakBytes(): number {
  const kilobytes = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

async function page(sha: string, items: number): Promise<number> {
  // The stand-in is cluster and archive at once: what the second sends again is known by its uid, and costs as much.
  const access = konfluxAt(http, url);
  const own = variant === 'buffered' ? [buffered(sha)] : konfluxTools(access, { ...scope, sha });
  const registry = createRegistry({ sandbox, tools: own });
  const call = { id: 'c', name: NAME, arguments: { sha }, rawArguments: JSON.stringify({ sha }) };
  const { result } = await registry.execute(call, { signal: AbortSignal.timeout(120_000) });
  if (result['lines'] !== items) throw new Error(`bench: ${JSON.stringify(result).slice(0, 500)}`);
  return Number(result['bytes']);
}

/** The ablation: the page as one text, parsed as a whole. */
function buffered(sha: string): Tool {
  return {
    definition: { name: NAME, description: 'PipelineRuns.', parameters: { type: 'object' } },
    parse: (args) => ({ ok: true, args }),
    async run() {
      const query = new URLSearchParams({
        labelSelector: `pipelinesascode.tekton.dev/sha=${sha}`,
        limit: '500',
      });
      const answer = await http.request({
        url: `${url}/apis/tekton.dev/v1/namespaces/${NAMESPACE}/pipelineruns?${query}`,
        headers: { authorization: `Bearer ${TOKEN}`, 'accept-encoding': 'gzip' },
        maxBytes: 2 * PAGE_BYTES,
      });
      const { items } = List.parse(answer.json());
      return {
        kind: 'Text',
        text: items.map((item) => `${JSON.stringify(item)}\n`).join(''),
        suffix: '.jsonl',
      };
    },
  };
}
