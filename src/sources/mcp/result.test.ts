import type { CallToolResult } from '@modelcontextprotocol/client';
import { expect, it } from 'vitest';
import type { ToolOutput } from '../../agent/tools/port.ts';
import { outputOf } from './result.ts';

const png = Buffer.alloc(300).toString('base64');

it.each<[string, CallToolResult, ToolOutput]>([
  [
    'texts one after the other',
    {
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    },
    { kind: 'Text', text: 'one\n\ntwo' },
  ],
  [
    'structure where there is no text',
    { content: [], structuredContent: { n: 1 } },
    { kind: 'Json', value: { n: 1 } },
  ],
  [
    'the text where it says the same as the structure',
    { content: [{ type: 'text', text: '{"n":1}' }], structuredContent: { n: 1 } },
    { kind: 'Text', text: '{"n":1}' },
  ],
  [
    'what is no text by its kind and size',
    {
      content: [
        { type: 'image', data: png, mimeType: 'image/png' },
        { type: 'audio', data: png, mimeType: 'audio/wav' },
        { type: 'resource', resource: { uri: 'file:///a.bin', mimeType: 'application/x', blob: png } },
        { type: 'resource', resource: { uri: 'file:///a.md', text: '# A' } },
        { type: 'resource_link', uri: 'https://x.example/b', name: 'b\u202e' },
      ],
    },
    {
      kind: 'Text',
      text: [
        '[image image/png, 300 bytes, not shown]',
        '[audio audio/wav, 300 bytes, not shown]',
        '[resource file:///a.bin application/x, 300 bytes, not shown]',
        '[resource file:///a.md]\n# A',
        '[resource b at https://x.example/b, not read]',
      ].join('\n\n'),
    },
  ],
  ['nothing as such', { content: [] }, { kind: 'Text', text: 'The tool returned nothing.' }],
  [
    "a tool's error as an error",
    { content: [{ type: 'text', text: 'no such page' }], isError: true },
    { kind: 'Error', message: 'no such page' },
  ],
  [
    'an error without words',
    { content: [], isError: true },
    { kind: 'Error', message: 'The tool failed without saying why.' },
  ],
])('a result is %s', (_what, result, output) => {
  expect(outputOf(result)).toEqual(output);
});
