import { z } from 'zod';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import { outside } from '../../http/destinations.ts';
import { sourceTool } from '../source-tool.ts';
import { textStream } from '../text-stream.ts';
import type { Farm } from './farm.ts';
import { peek } from './peek.ts';

export function testLog(farm: Farm): Tool {
  return sourceTool(farm.source, {
    name: 'tf_get_test_log',
    description: `A log or another artifact of Testing Farm by its URL, below ${farm.artifactsBase}/ only.`,
    schema: z.object({
      url: z.string().min(1).max(2_048).describe('The href of a log, as it stands in the results'),
    }),
    async run(args, { signal }) {
      const url = ofSameScheme(args.url, farm.artifactsBase);
      const why = outside(url, farm.artifacts);
      if (why !== undefined) return { kind: 'Error', message: refusal(why, farm.artifactsBase) };
      const { body, headers } = await farm.artifact(url, signal);
      return withKind(body, suffixOf(url, headers['content-type']));
    },
  });
}

/** Results of an https server have links of http, from before it was one. It is asked by https or not at all. */
function ofSameScheme(url: string, base: string): string {
  return base.startsWith('https:') ? url.replace(/^http:\/\//i, 'https://') : url;
}

const refusal = (why: string, base: string): string =>
  `Not allowed: ${why}. Logs are read below ${base}/ only: give the href of a log as it stands in the results; one that is relative belongs behind the request's own address.`;

/** What a browser would call it: the URL's own ending, else by what the server says. */
function suffixOf(url: string, contentType = ''): string {
  const ending = /\.[a-z0-9]{1,8}$/i.exec(new URL(url).pathname)?.[0].toLowerCase();
  return ending ?? (contentType.startsWith('text/html') ? '.html' : '.log');
}

/** Archives and pictures are among the artifacts: a zero byte at the beginning tells them from text. */
async function withKind(body: AsyncIterable<Uint8Array>, suffix: string): Promise<ToolOutput> {
  const { start, body: whole } = await peek(body);
  const log = textStream(whole, {
    suffix,
    what: 'log',
    whenEmpty: 'The log is empty: the test wrote nothing, or ended before it could.',
  });
  return { ...log, binary: start.includes(0) };
}
