import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a scripted model answers, whatever the API it answers by. */
export type ScriptedTurn =
  | {
      readonly text?: string;
      readonly toolCalls?: readonly {
        readonly name: string;
        readonly args: Readonly<Record<string, unknown>>;
      }[];
      /** In the API's own words. */
      readonly finishReason?: string;
      readonly usage?: {
        /** All of the input, cached tokens included. */
        readonly prompt: number;
        readonly completion: number;
        readonly cached?: number;
      };
    }
  /** The whole response body as it is, for what real servers send amiss. */
  | { readonly raw: unknown };

/** A script has no tokens: four bytes for one, as a rule of thumb, so that limits have something to count. */
export function usageOf(
  request: unknown,
  turn: Exclude<ScriptedTurn, { readonly raw: unknown }>,
): NonNullable<typeof turn.usage> {
  const tokens = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4);
  return turn.usage ?? { prompt: tokens(request), completion: tokens(turn) };
}

export type Fault =
  | {
      readonly kind: 'Status';
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
    }
  | { readonly kind: 'Delay'; readonly ms: number }
  /** The connection is closed without an answer. */
  | { readonly kind: 'Drop' }
  /** Half an answer, then the connection is closed. */
  | { readonly kind: 'CutBody' }
  | { readonly kind: 'Garbage'; readonly text: string };

/** False: the fault was a delay, and the request goes on to be answered. */
export async function applyFault(fault: Fault | undefined, response: ServerResponse): Promise<boolean> {
  switch (fault?.kind) {
    case undefined:
      return false;
    case 'Delay':
      await new Promise((resolve) => setTimeout(resolve, fault.ms));
      return false;
    case 'Status':
      for (const [name, value] of Object.entries(fault.headers ?? {})) response.setHeader(name, value);
      sendJson(response, fault.status, fault.body ?? { error: { message: 'injected fault', type: 'fault' } });
      return true;
    case 'Drop':
      response.destroy();
      return true;
    case 'CutBody':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"choices":[{"mess', () => response.destroy());
      return true;
    case 'Garbage':
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(fault.text);
      return true;
    default:
      return fault satisfies never;
  }
}

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** A server on loopback; a handler that throws is answered with 500. */
export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  { host = '127.0.0.1', port = 0 }: { readonly host?: string; readonly port?: number } = {},
): Promise<{ readonly origin: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => {
      const message = error instanceof Error ? error.message : String(error);
      if (!response.headersSent) sendJson(response, 500, { error: { message, type: 'server_error' } });
      else response.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const address = server.address() as AddressInfo;
  return {
    origin: `http://${host}:${address.port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
