import { describe, expect, it } from 'vitest';
import type { Commands } from './commands.ts';
import { readSandboxFile } from './files.ts';

/** A node that says `said`, hands on `chunks`, and ends with `exitCode`. */
function aNode(said: string, chunks: readonly string[], exitCode = 0): Commands {
  return {
    where: 'pod sandboxes/box',
    async run(_, __, { stdout, stderr }) {
      await stderr?.write(Buffer.from(said));
      for (const chunk of chunks) await stdout?.write(Buffer.from(chunk));
      return { kind: 'Exited', exitCode };
    },
    runPlain: async () => 0,
  };
}

async function read(node: Commands): Promise<string> {
  let text = '';
  for await (const chunk of readSandboxFile(node, '/tmp/data/a', { newId: () => 'id', signal: undefined }))
    text += Buffer.from(chunk).toString();
  return text;
}

describe('readSandboxFile', () => {
  it('gives what the file holds', async () => {
    expect(await read(aNode('11\n', ['hello ', 'world']))).toBe('hello world');
    expect(await read(aNode('0\n', []))).toBe('');
  });

  it('tells a file whose end was dropped on the way from one that is shorter', async () => {
    await expect(read(aNode('11\n', ['hello ']))).rejects.toThrow(
      'reading /tmp/data/a in pod sandboxes/box: 6 of 11 bytes arrived',
    );
    await expect(read(aNode('11\n', []))).rejects.toThrow('0 of 11 bytes arrived');
  });

  it('says what the program says', async () => {
    await expect(read(aNode('no such file\n', [], 1))).rejects.toThrow('exit code 1: no such file');
  });
});
