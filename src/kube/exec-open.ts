import type { ClientRequest, IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import type { ExecConnection } from './exec-connection.ts';
import { ExecError, messageOf } from './exec-error.ts';
import { EXEC_PROTOCOL, parseKubeStatus, refusal } from './exec-protocol.ts';

export interface ExecTarget {
  readonly namespace: string;
  readonly pod: string;
  /** Left out: the pod's only or default container. */
  readonly container?: string;
  /** Program and arguments; no shell. It travels in the URL: at most some 100 KiB in all. */
  readonly command: readonly string[];
}

export interface ExecStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

/** A message of the API server is some 32 KiB; what is far above is not the protocol. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** A refusal's `metav1.Status` is below 1 KiB. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** It comes with the headers; what does not come soon is not waited for. */
const REFUSAL_MS = 2_000;

/**
 * Opens the upgraded connection, paused: nothing is lost before the caller listens and resumes.
 * Rejects with `ExecError`, or with the signal's reason.
 */
export async function openExec(
  connection: ExecConnection,
  target: ExecTarget,
  streams: ExecStreams,
  openMs: number,
  signal: AbortSignal | undefined,
): Promise<WebSocket> {
  signal?.throwIfAborted();
  const where = nameOf(target);
  const { headers, agent } = await prepare(connection, where);
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  const socket = new WebSocket(execUrl(connection.server, target, streams), EXEC_PROTOCOL, {
    agent,
    headers,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    ...maskingFor(connection.server),
  });
  const abort = () => {
    reject(signal?.reason);
    socket.terminate();
  };
  signal?.addEventListener('abort', abort, { once: true });
  const deadline = setTimeout(() => {
    reject(
      new ExecError('Unreachable', `exec in ${where}: the API server did not answer within ${openMs} ms`),
    );
    socket.terminate();
  }, openMs);
  socket.on('open', () => {
    socket.pause();
    resolve(socket);
  });
  socket.on('unexpected-response', (request, response) => {
    clearTimeout(deadline);
    void readRefusal(response, where).then((error) => {
      reject(error);
      discard(request, socket);
    });
  });
  // Stays for the connection's whole life: an error event without a listener would end the process.
  socket.on('error', (error) => reject(unopened(error, where)));
  try {
    return await promise;
  } finally {
    clearTimeout(deadline);
    signal?.removeEventListener('abort', abort);
  }
}

async function prepare(connection: ExecConnection, where: string) {
  try {
    return await connection.prepare();
  } catch (cause) {
    throw new ExecError(
      'Unreachable',
      `exec in ${where}: no credentials for the API server: ${messageOf(cause)}`,
      { cause },
    );
  }
}

export function nameOf({ namespace, pod, container }: ExecTarget): string {
  return container === undefined ? `${namespace}/${pod}` : `${namespace}/${pod}/${container}`;
}

function execUrl(
  server: string,
  { namespace, pod, container, command }: ExecTarget,
  streams: ExecStreams,
): string {
  const query = new URLSearchParams();
  for (const word of command) query.append('command', word);
  if (container !== undefined) query.set('container', container);
  for (const name of ['stdin', 'stdout', 'stderr'] as const) {
    if (streams[name]) query.set(name, 'true');
  }
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec`;
  return `${server.replace(/^http/, 'ws')}${path}?${query}`;
}

/**
 * RFC 6455 masks what a browser's page sends, so that it cannot speak to a plain-text cache on the way. Inside TLS
 * nobody on the way reads a byte, and the zero mask saves one pass and one copy over everything that is sent.
 */
function maskingFor(server: string): { readonly generateMask?: (mask: Buffer) => void } {
  return server.startsWith('https:') ? { generateMask: (mask) => void mask.fill(0) } : {};
}

async function readRefusal(response: IncomingMessage, where: string): Promise<ExecError> {
  const status = response.statusCode ?? 0;
  const body = await bodyText(response);
  const parsed = parseKubeStatus(body);
  if (parsed !== undefined) return refusal(parsed, where, status);
  if (status === 403 && body === '') {
    const message = `exec in ${where}: the API server refused the upgrade without a reason; it must offer ${EXEC_PROTOCOL} (Kubernetes 1.30 or later)`;
    return new ExecError('Protocol', message, { status });
  }
  return refusal(
    { status: 'Failure', message: `HTTP ${status} instead of an upgrade: ${body.slice(0, 200).trim()}` },
    where,
    status,
  );
}

/** What came until the end, the cap or the deadline. */
async function bodyText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const deadline = setTimeout(() => response.destroy(), REFUSAL_MS);
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= MAX_REFUSAL_BYTES) break;
    }
  } catch {
    // A refusal cut short is still a refusal: its HTTP status is known.
  } finally {
    clearTimeout(deadline);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function discard(request: ClientRequest, socket: WebSocket): void {
  request.destroy();
  socket.terminate();
}

function unopened(error: Error, where: string): ExecError {
  if (/subprotocol|Sec-WebSocket|Upgrade header/.test(error.message)) {
    return new ExecError(
      'Protocol',
      `exec in ${where}: ${error.message}; the API server, and any proxy before it, must offer ${EXEC_PROTOCOL} (Kubernetes 1.30 or later)`,
      { cause: error },
    );
  }
  return new ExecError('Unreachable', `exec in ${where}: no connection to the API server: ${error.message}`, {
    cause: error,
  });
}
