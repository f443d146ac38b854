import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROUTING_PAGE, routingPage } from './routing/page.ts';

/** `node hack/docs/generate-main.ts` writes the pages that the code tells; with `--check` a stale one fails. */
const path = join(import.meta.dirname, '../..', ROUTING_PAGE);
const page = routingPage();
if (current() !== page) {
  if (process.argv.includes('--check')) {
    process.stderr.write(`${ROUTING_PAGE} is stale: run npm run generate and commit the result\n`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, page);
    process.stdout.write(`wrote ${ROUTING_PAGE}\n`);
  }
}

function current(): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
