import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeKubeconfig } from '../../hack/cluster/kubeconfig.ts';
import { asKubeconfigData, createAuthority } from '../../hack/cluster/pki.ts';

/** One request as the proxy saw it. */
export interface SeenRequest {
  /** `performance.now()` of its arrival. */
  readonly atMs: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly kind: 'watch' | 'upgrade' | 'call';
  /** The same for requests over the same connection. */
  readonly connection: number;
}

export type Fault =
  /** Answered by the proxy, never forwarded. */
  | {
      readonly kind: 'Answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** The socket is reset, before anything was forwarded. */
  | { readonly kind: 'Drop' }
  /** Forwarded, but the socket is reset instead of the answer: the write happened, its answer is lost. */
  | { readonly kind: 'LoseAnswer' }
  /** Forwarded only when the rule is removed. */
  | { readonly kind: 'Hold' }
  /** Forwarded after so long. */
  | { readonly kind: 'Delay'; readonly ms: number };

export interface Rule {
  readonly match: (request: SeenRequest) => boolean;
  readonly fault: Fault;
  /** After so many requests the rule is spent; absent: until removed. */
  readonly times?: number;
}

export interface ActiveRule {
  /** Requests it met. */
  readonly hits: number;
  remove(): void;
}

/** An HTTPS reverse proxy in front of one HTTP(S) server, which breaks what it is told to break. Loopback only. */
export interface FaultProxy {
  /** `https://127.0.0.1:port`. */
  readonly server: string;
  /** PEM of the authority that signed the proxy's certificate. */
  readonly ca: string;
  readonly seen: readonly SeenRequest[];
  /** The first matching rule counts, oldest first. */
  rule(rule: Rule): ActiveRule;
  /** No byte passes any more on the connections that are open now, in either direction, without a word; new ones work. */
  freeze(): void;
  /** Resets every connection that is open now. */
  dropAll(): void;
  /** While true, new connections are reset at once, as if nobody listened. */
  refuse(on: boolean): void;
  /** The most matching requests in any one second. */
  peakPerSecond(match: (request: SeenRequest) => boolean): number;
  /** Connections that clients hold open now. */
  readonly openConnections: number;
  /** A kubeconfig that leads through the proxy. */
  writeKubeconfig(file: string, token: string): void;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** `http(s)://host:port` to forward to. */
  readonly target: string;
  /** PEM of the target's authority. */
  readonly targetCa?: string | Buffer;
}

interface Exchange {
  frozen: boolean;
  readonly freeze: () => void;
}

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const target = new URL(options.target);
  const secure = target.protocol === 'https:';
  const agent = secure ? new Agent({ keepAlive: true, ca: options.targetCa }) : undefined;
  const pki = mkdtempSync(join(tmpdir(), 'fault-proxy-'));
  const authority = await createAuthority(pki);
  const pair = await authority.issue({
    name: 'proxy',
    commonName: 'fault-proxy',
    names: ['IP:127.0.0.1', 'DNS:localhost'],
  });
  const caData = asKubeconfigData(authority.caFile);
  const ca = readFileSync(authority.caFile, 'utf8');
  const server: Server = createServer({ cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) });
  rmSync(pki, { recursive: true, force: true });

  const seen: SeenRequest[] = [];
  const rules: (Rule & { hits: number; readonly release: (() => void)[] })[] = [];
  /** TLS sockets, as requests know them. */
  const sockets = new Set<Socket>();
  /** The TCP sockets below: only these can be reset. */
  const tcp = new Set<Socket>();
  const frozen = new WeakSet<object>();
  const exchanges = new Set<Exchange>();
  const connections = new Map<Socket, number>();
  let refusing = false;

  const forward = (request: IncomingMessage): ClientRequest => {
    const { host: _, ...headers } = request.headers;
    return (secure ? httpsRequest : httpRequest)({
      host: target.hostname,
      port: target.port,
      method: request.method,
      path: request.url,
      headers: { ...headers, host: target.host },
      // Upgraded sockets never go back to a pool.
      ...(secure ? { agent: headers.upgrade ? false : agent, ca: options.targetCa } : {}),
    });
  };

  const note = (request: IncomingMessage, upgrade: boolean): SeenRequest => {
    const url = new URL(request.url ?? '/', 'https://proxy');
    const entry: SeenRequest = {
      atMs: performance.now(),
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      kind: upgrade ? 'upgrade' : url.searchParams.get('watch') === 'true' ? 'watch' : 'call',
      connection: connections.get(request.socket) ?? 0,
    };
    seen.push(entry);
    return entry;
  };

  const faultFor = (entry: SeenRequest) => {
    const rule = rules.find((one) => (one.times === undefined || one.hits < one.times) && one.match(entry));
    if (rule) rule.hits += 1;
    return rule;
  };

  /** Resolves true when the request is to be forwarded. */
  async function pass(
    entry: SeenRequest,
    socket: Duplex,
    answer: (fault: Extract<Fault, { kind: 'Answer' }>) => void,
  ): Promise<{ readonly loseAnswer: boolean } | undefined> {
    const rule = faultFor(entry);
    switch (rule?.fault.kind) {
      case 'Answer':
        answer(rule.fault);
        return undefined;
      case 'Drop':
        socket.destroy();
        return undefined;
      case 'Hold': {
        const { release } = rule;
        await new Promise<void>((resolve) => release.push(resolve));
        return { loseAnswer: false };
      }
      case 'Delay':
        await sleep(rule.fault.ms);
        return { loseAnswer: false };
      case 'LoseAnswer':
        return { loseAnswer: true };
      case undefined:
        return { loseAnswer: false };
    }
  }

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const client = request.socket;
    const entry = note(request, false);
    // A frozen connection takes what comes and says nothing.
    if (frozen.has(client)) return;
    const go = await pass(entry, client, (fault) => {
      request.resume();
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(fault.body ?? '');
    });
    if (go === undefined || frozen.has(client)) return;
    const upstream = forward(request);
    const exchange: Exchange = {
      frozen: false,
      freeze: () => {
        exchange.frozen = true;
        request.unpipe(upstream);
        incoming?.unpipe(response);
        incoming?.pause();
      },
    };
    let incoming: IncomingMessage | undefined;
    exchanges.add(exchange);
    const broken = () => {
      // A frozen client is not told that the other side is gone: that is the point.
      if (!exchange.frozen) client.destroy();
    };
    upstream.on('error', broken);
    upstream.on('response', (answer) => {
      incoming = answer;
      answer.on('error', broken);
      if (exchange.frozen) return;
      if (go.loseAnswer) {
        client.destroy();
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      // pipe() says nothing when the other side breaks in the middle.
      answer.on('aborted', broken);
    });
    response.on('close', () => {
      exchanges.delete(exchange);
      upstream.destroy();
    });
    request.pipe(upstream);
  }

  async function onUpgrade(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const entry = note(request, true);
    if (frozen.has(client)) return;
    const go = await pass(entry, client, (fault) => {
      const headers = {
        'content-length': String(Buffer.byteLength(fault.body ?? '')),
        connection: 'close',
        ...fault.headers,
      };
      client.end(`${statusLine(fault.status)}${headerLines(headers)}\r\n${fault.body ?? ''}`);
    });
    if (go === undefined || frozen.has(client)) return;
    const upstream = forward(request);
    let tunnel: Duplex | undefined;
    const exchange: Exchange = {
      frozen: false,
      freeze: () => {
        exchange.frozen = true;
        client.unpipe();
        tunnel?.unpipe();
        client.pause();
        tunnel?.pause();
      },
    };
    exchanges.add(exchange);
    const broken = () => {
      if (!exchange.frozen) client.destroy();
    };
    client.on('error', () => undefined);
    client.on('close', () => {
      exchanges.delete(exchange);
      upstream.destroy();
      tunnel?.destroy();
    });
    upstream.on('error', broken);
    upstream.on('upgrade', (answer, socket, upstreamHead) => {
      tunnel = socket;
      socket.on('error', broken);
      socket.on('close', broken);
      if (exchange.frozen) return;
      client.write(`${statusLine(answer.statusCode ?? 101)}${headerLines(answer.headers)}\r\n`);
      if (upstreamHead.length > 0) client.write(upstreamHead);
      if (head.length > 0) socket.write(head);
      client.pipe(socket);
      socket.pipe(client);
    });
    upstream.on('response', (answer) => {
      // Refused: an ordinary answer instead of the upgrade.
      client.write(
        `${statusLine(answer.statusCode ?? 502)}${headerLines({ ...answer.headers, connection: 'close', 'transfer-encoding': undefined })}\r\n`,
      );
      answer.pipe(client);
    });
    upstream.end();
  }

  server.on(
    'request',
    (request: IncomingMessage, response: ServerResponse) => void onRequest(request, response),
  );
  server.on(
    'upgrade',
    (request: IncomingMessage, socket: Duplex, head: Buffer) => void onUpgrade(request, socket, head),
  );
  server.on('connection', (socket: Socket) => {
    if (refusing) {
      socket.resetAndDestroy();
      return;
    }
    tcp.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => tcp.delete(socket));
  });
  server.on('secureConnection', (socket: Socket) => {
    sockets.add(socket);
    connections.set(socket, connections.size + 1);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // listening on TCP
  const url = `https://127.0.0.1:${port}`;

  return {
    server: url,
    ca,
    seen,
    rule(rule) {
      const active = { ...rule, hits: 0, release: [] };
      rules.push(active);
      return {
        get hits() {
          return active.hits;
        },
        remove() {
          const at = rules.indexOf(active);
          if (at !== -1) rules.splice(at, 1);
          for (const release of active.release as (() => void)[]) release();
        },
      };
    },
    freeze() {
      for (const socket of sockets) frozen.add(socket);
      for (const exchange of exchanges) exchange.freeze();
    },
    dropAll() {
      for (const socket of tcp) socket.resetAndDestroy();
    },
    refuse(on) {
      refusing = on;
    },
    peakPerSecond(match) {
      const times = seen.filter(match).map((request) => request.atMs);
      return Math.max(
        0,
        ...times.map((start) => times.filter((at) => at >= start && at < start + 1000).length),
      );
    },
    get openConnections() {
      return sockets.size;
    },
    writeKubeconfig(file, token) {
      writeKubeconfig(file, { clusterName: 'faults', server: url, caData, user: 'admin', token });
    },
    async close() {
      for (const socket of [...sockets, ...tcp]) socket.destroy();
      agent?.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${status === 101 ? 'Switching Protocols' : 'Answer'}\r\n`;
}

function headerLines(headers: Readonly<Record<string, string | readonly string[] | undefined>>): string {
  return Object.entries(headers)
    .flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => [name, one] as const))
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}
