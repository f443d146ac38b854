// The worked example of docs/sources.md: compiled as it stands there, and run against a server.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tool, ToolOutput } from '../../src/agent/tools/port.ts';
import { createHttpClient } from '../../src/http/client.ts';
import { toolToken } from '../../src/settings/tokens.ts';
import { read, root } from './sources.ts';

const [, path = '', example = ''] =
  /```ts\n\/\/ (src\/sources\/\w+\.ts)\n([\s\S]*?)```/.exec(read('docs/sources.md')) ?? [];
const file = join(root, path);

/** What the compiler says of the example, as if it were where it says it is. */
function complaints(text: string): readonly string[] {
  const config = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root);
  const host = ts.createCompilerHost({ ...options, noEmit: true });
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.readFile = (name) => (name === file ? text : readFile(name));
  host.getSourceFile = (name, languageVersion, ...rest) =>
    name === file
      ? ts.createSourceFile(name, text, languageVersion, true)
      : getSourceFile(name, languageVersion, ...rest);
  const program = ts.createProgram([file], { ...options, noEmit: true, incremental: false }, host);
  const source = program.getSourceFile(file);
  if (source === undefined) return ['the example was not found'];
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
    ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'),
  );
}

describe('the worked example of a source', () => {
  const SHA = 'c'.repeat(40);
  let folder: string;
  let server: Server;
  let asked: string[];
  let tools: readonly Tool[];
  const http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hummingbird-example-'));
    asked = [];
    server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`);
      if (request.headers.authorization !== 'Bearer coverage-1') return void response.writeHead(401).end();
      if (request.url === `/api/${SHA}`) return void response.end('{"before": 81.5, "after": 80}');
      if (request.url === `/api/${SHA}/lines`) return void response.end('src/a.ts:7\n');
      response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    tools = await toolsWith('coverage-1');
  }, 60_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await http.close();
  });

  /** The example as a module: where it lies now, its imports are those of its own place. */
  async function toolsWith(token: string): Promise<readonly Tool[]> {
    const placed = example.replace(/from '([^']+)'/g, (_all, name: string) => {
      const target = name.startsWith('.')
        ? pathToFileURL(join(dirname(file), name)).href
        : import.meta.resolve(name);
      return `from '${target.startsWith('file:') ? fileURLToPath(target) : target}'`;
    });
    const module = join(folder, 'coverage.ts');
    writeFileSync(module, placed);
    const { coverageTools } = await import(module);
    const { port } = server.address() as AddressInfo;
    return coverageTools(
      { http, baseUrl: `http://127.0.0.1:${port}`, token: toolToken(token) },
      { project: 'group/app', iid: 1, sha: SHA },
    );
  }

  async function call(among: readonly Tool[], name: string, args: unknown): Promise<ToolOutput> {
    const tool = among.find(({ definition }) => definition.name === name);
    const parsed = tool?.parse(args);
    if (tool === undefined || parsed?.ok !== true) throw new Error(JSON.stringify(parsed ?? name));
    return tool.run(parsed.args, { signal: AbortSignal.timeout(60_000) });
  }

  it('compiles as it stands, and the compiler would say so if it did not', () => {
    expect(example.split('\n').length).toBeGreaterThan(40);
    expect(complaints(example)).toEqual([]);
    expect(complaints(example.replace("kind: 'Json', value", "kind: 'Jason', value")).join()).toMatch(
      /Jason/,
    );
  }, 120_000);

  it('is defined for the model, with notes and metadata', () => {
    expect(tools.map(({ definition }) => definition.name)).toEqual([
      'coverage_get_summary',
      'coverage_get_lines',
    ]);
    expect(tools[0]?.definition.notes).toContain('{coverage_ui}');
    expect(tools[0]?.responseMetadata).toEqual({ coverage_ui: expect.stringMatching(/\/ui$/) });
  });

  it('reads a small answer and a long one', async () => {
    expect(await call(tools, 'coverage_get_summary', { sha: SHA })).toEqual({
      kind: 'Json',
      value: { before: 81.5, after: 80 },
    });
    const output = await call(tools, 'coverage_get_lines', { sha: SHA });
    if (output.kind !== 'Stream') throw new Error(JSON.stringify(output));
    const parts: Uint8Array[] = [];
    for await (const chunk of output.chunks) parts.push(chunk);
    expect(Buffer.concat(parts).toString()).toBe('src/a.ts:7\n');
  });

  it('refuses another commit without asking, and says what is wrong with an argument', async () => {
    asked.splice(0);
    expect(await call(tools, 'coverage_get_summary', { sha: 'd'.repeat(40) })).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/^Not allowed/),
    });
    await expect(call(tools, 'coverage_get_lines', { sha: 'main' })).rejects.toThrow('expected a commit SHA');
    expect(asked).toEqual([]);
  });

  it('tells the model what a refused credential means', async () => {
    expect(await call(await toolsWith('another'), 'coverage_get_summary', { sha: SHA })).toMatchObject({
      kind: 'Error',
      message: expect.stringContaining('The coverage token is not valid; no Coverage tool will work.'),
    });
  });
});
