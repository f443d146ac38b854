import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatedFiles } from './generated.ts';

/** `node hack/docs/generate-main.ts` writes the files that the code tells; with `--check` a stale one fails. */
const root = join(import.meta.dirname, '../..');
for (const { path, content } of generatedFiles()) {
  if (current(path) === content) continue;
  if (process.argv.includes('--check')) {
    process.stderr.write(`${path} is stale: run npm run generate and commit the result\n`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    process.stdout.write(`wrote ${path}\n`);
  }
}

function current(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
