import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

/** One exec as the stand-in sees it; the script says what the server does. */
export interface ExecSession {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly socket: WebSocket;
  /** Bytes of standard input so far. */
  stdinBytes(): number;
  /** All of standard input, when the client has half-closed it. */
  stdin(): Promise<Buffer>;
  send(channel: number, bytes: string | Uint8Array): Promise<void>;
  exit(code: number): Promise<void>;
  status(status: object): Promise<void>;
  /** Ends the TCP connection in an orderly way, without a WebSocket close. */
  hangUp(): void;
  /** Resolves when the client has gone. */
  readonly gone: Promise<void>;
}

export type ExecScript = (session: ExecSession) => void | Promise<void>;

export interface ExecServerOptions {
  readonly script?: ExecScript;
  /** Answers the upgrade with plain HTTP instead, each time or the first `times`. */
  readonly refuse?: {
    readonly status: number;
    readonly body: string;
    readonly hang?: boolean;
    readonly times?: number;
  };
  /** The subprotocol that is offered; default v5. False: upgrades without one. */
  readonly protocol?: string | false;
  readonly answerPings?: boolean;
  /** The bearer token that is due. */
  readonly token?: string;
}

export interface ExecServer {
  readonly url: string;
  /** What the client did against the protocol; empty at the end of a good test. */
  readonly violations: readonly string[];
  readonly sessions: readonly ExecSession[];
  stop(): Promise<void>;
}

const PATH = /^\/api\/v1\/namespaces\/[a-z0-9-]+\/pods\/[a-z0-9.-]+\/exec$/;
const V5 = 'v5.channel.k8s.io';

/** A strict stand-in for the exec endpoint of an API server, on loopback; it speaks v5 and writes down each breach. */
export async function startExecServer(options: ExecServerOptions): Promise<ExecServer> {
  const violations: string[] = [];
  const sessions: ExecSession[] = [];
  const http = createServer((_request, response) => {
    violations.push('a request without an upgrade');
    response.writeHead(400).end();
  });
  const sockets = new WebSocketServer({
    noServer: true,
    autoPong: options.answerPings !== false,
    perMessageDeflate: false,
    handleProtocols: () => options.protocol ?? V5,
  });
  if (options.protocol === false) sockets.on('headers', (headers) => dropProtocol(headers));
  const connections = new Set<Duplex>();
  let refused = 0;
  http.on('connection', (socket) => connections.add(socket));
  http.on('upgrade', (request, socket, head) => {
    socket.on('error', () => undefined);
    violations.push(...requestViolations(request, options.token));
    refused += 1;
    if (options.refuse !== undefined && refused <= (options.refuse.times ?? Number.POSITIVE_INFINITY)) {
      return refuse(socket, options.refuse);
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const session = converse(webSocket, socket, request, violations);
      sessions.push(session);
      void Promise.resolve(options.script?.(session)).catch((error: unknown) =>
        violations.push(`script: ${error}`),
      );
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${portOf(http)}`,
    violations,
    sessions,
    stop: () => stop(http, sockets, connections),
  };
}

function requestViolations(request: IncomingMessage, token: string | undefined): string[] {
  const found: string[] = [];
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand-in');
  if (request.method !== 'GET') found.push(`method ${request.method}`);
  if (!PATH.test(pathname)) found.push(`path ${pathname}`);
  if (searchParams.getAll('command').length === 0) found.push('no command');
  if (!['stdin', 'stdout', 'stderr'].some((name) => searchParams.get(name) === 'true'))
    found.push('no stream asked for');
  for (const name of searchParams.keys()) {
    if (!['command', 'container', 'stdin', 'stdout', 'stderr'].includes(name))
      found.push(`query parameter ${name}`);
  }
  if (request.headers['sec-websocket-protocol'] !== V5)
    found.push(`protocols ${request.headers['sec-websocket-protocol']}`);
  if (request.headers['sec-websocket-extensions'] !== undefined) found.push('asks for compression');
  if (token !== undefined && request.headers.authorization !== `Bearer ${token}`)
    found.push('wrong bearer token');
  return found;
}

function dropProtocol(headers: string[]): void {
  const at = headers.findIndex((line) => line.toLowerCase().startsWith('sec-websocket-protocol'));
  if (at >= 0) headers.splice(at, 1);
}

function refuse(socket: Duplex, { status, body, hang }: NonNullable<ExecServerOptions['refuse']>): void {
  const length = Buffer.byteLength(body) + (hang === true ? 1000 : 0);
  socket.write(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
  );
  if (hang !== true) socket.end();
}

function converse(
  webSocket: WebSocket,
  tcp: Duplex,
  request: IncomingMessage,
  violations: string[],
): ExecSession {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand-in');
  const chunks: Buffer[] = [];
  let bytes = 0;
  const closed = Promise.withResolvers<Buffer>();
  const gone = Promise.withResolvers<void>();
  let stdinClosed = false;
  webSocket.on('error', () => undefined);
  webSocket.on('close', () => gone.resolve());
  webSocket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) violations.push('a text message');
    const [channel, second] = data;
    if (channel === 255) {
      if (data.length !== 2 || second !== 0)
        violations.push(`a CLOSE message of ${data.length} bytes for ${second}`);
      if (stdinClosed) violations.push('stdin closed twice');
      stdinClosed = true;
      closed.resolve(Buffer.concat(chunks));
    } else if (channel !== 0) violations.push(`a message on channel ${channel}`);
    else if (stdinClosed) violations.push('stdin after its CLOSE message');
    else if (searchParams.get('stdin') !== 'true') violations.push('stdin that was not asked for');
    else {
      chunks.push(data.subarray(1));
      bytes += data.length - 1;
    }
  });
  const send = (channel: number, payload: string | Uint8Array) =>
    new Promise<void>((resolve) =>
      webSocket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(payload)]), () => resolve()),
    );
  const status = (value: object) => send(3, JSON.stringify({ metadata: {}, ...value }));
  return {
    path: pathname,
    query: searchParams,
    headers: request.headers,
    socket: webSocket,
    stdinBytes: () => bytes,
    stdin: () => closed.promise,
    send,
    status,
    exit: (code) => status(code === 0 ? { status: 'Success' } : nonZero(code)),
    hangUp: () => void tcp.end(),
    gone: gone.promise,
  };
}

function nonZero(code: number): object {
  return {
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  };
}

function portOf(server: Server): number {
  const address = server.address() as AddressInfo;
  return address.port;
}

async function stop(http: Server, sockets: WebSocketServer, connections: Iterable<Duplex>): Promise<void> {
  sockets.close();
  for (const connection of connections) connection.destroy();
  await new Promise<void>((resolve) => http.close(() => resolve()));
}
