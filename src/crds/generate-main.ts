import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type GeneratedFile, generatedFiles } from './generate.ts';

/** `node src/crds/generate-main.ts` writes what has changed; with `--check` it only names it and fails. */
const root = join(import.meta.dirname, '../..');
const check = process.argv.includes('--check');

const stale: GeneratedFile[] = [];
for (const file of generatedFiles()) if ((await current(file.path)) !== file.content) stale.push(file);

for (const { path, content } of stale) {
  if (check) {
    process.stderr.write(`${path} is stale: run npm run generate and commit the result\n`);
    process.exitCode = 1;
    continue;
  }
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
  process.stdout.write(`wrote ${path}\n`);
}

async function current(path: string): Promise<string | undefined> {
  try {
    return await readFile(join(root, path), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
