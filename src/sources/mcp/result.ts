import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import type { ToolOutput } from '../../agent/tools/port.ts';
import { readable } from './readable.ts';

/** Of what a server says went wrong. */
const ERROR_MAX = 2_000;

/** What a server returned, as every source's output: what is no text is said, not shown. */
export function outputOf(result: CallToolResult): ToolOutput {
  const text = result.content
    .map(textOf)
    .filter((part) => part !== '')
    .join('\n\n');
  if (result.isError === true)
    return { kind: 'Error', message: readable(text, ERROR_MAX) || 'The tool failed without saying why.' };
  const { structuredContent } = result;
  // Servers that answer in JSON say the same as text, for clients that know no structure.
  if (text === '' && isObject(structuredContent)) return { kind: 'Json', value: structuredContent };
  if (text === '' && structuredContent !== undefined)
    return { kind: 'Json', value: { result: structuredContent } };
  return { kind: 'Text', text: text === '' ? 'The tool returned nothing.' : text };
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type} ${named(block.mimeType)}, ${bytesOf(block.data)} bytes, not shown]`;
    case 'resource_link':
      return `[resource ${named(block.name)} at ${named(block.uri)}, not read]`;
    case 'resource': {
      const { resource } = block;
      if ('text' in resource) return `[resource ${named(resource.uri)}]\n${resource.text}`;
      const type = resource.mimeType === undefined ? '' : ` ${named(resource.mimeType)}`;
      return `[resource ${named(resource.uri)}${type}, ${bytesOf(resource.blob)} bytes, not shown]`;
    }
    default:
      return block satisfies never;
  }
}

const named = (text: string): string => readable(text, 200).replace(/\s+/g, ' ');

/** Of what base64 stands for. */
const bytesOf = (base64: string): number => Math.floor((base64.replace(/=+$/, '').length * 3) / 4);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
