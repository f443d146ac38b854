import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { startFaultProxy } from './proxy.ts';

/** An HTTP and WebSocket echo server behind a fault proxy. */
async function aStage() {
  const reached: string[] = [];
  const target = createServer((incoming: IncomingMessage, response: ServerResponse) => {
    reached.push(`${incoming.method} ${incoming.url}`);
    if (incoming.url === '/drip') {
      response.write('one\n');
      setInterval(() => response.write('more\n'), 20).unref();
      return;
    }
    incoming.pipe(response.writeHead(200, { 'x-host': incoming.headers.host ?? '' }));
  });
  const sockets = new WebSocketServer({ noServer: true });
  target.on('upgrade', (incoming, socket, head) => {
    if (incoming.url === '/refused') {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno');
      return;
    }
    sockets.handleUpgrade(incoming, socket, head, (ws) => {
      ws.on('message', (data) => ws.send(data));
    });
  });
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  const { port } = target.address() as AddressInfo; // listening on TCP
  const proxy = await startFaultProxy({ target: `http://127.0.0.1:${port}` });
  const dispatcher = new Agent({ connect: { ca: proxy.ca } });
  onTestFinished(async () => {
    await dispatcher.destroy();
    await proxy.close();
    target.closeAllConnections();
    target.close();
  });
  const call = async (path: string, body?: string) => {
    const answer = await request(`${proxy.server}${path}`, {
      dispatcher,
      signal: AbortSignal.timeout(1_500),
      ...(body === undefined ? {} : { method: 'POST', body }),
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const open = async (path: string) => {
    const socket = new WebSocket(`${proxy.server.replace('https', 'wss')}${path}`, { ca: proxy.ca });
    socket.on('error', () => undefined);
    await once(socket, 'open');
    return socket;
  };
  return { proxy, reached, call, open, dispatcher };
}

test('bodies pass both ways, whatever their size', async () => {
  const { call } = await aStage();
  const body = 'x'.repeat(5_000_000);
  expect((await call('/echo', body)).text === body).toBe(true);
});

test('faults meet the requests they name, as often as they say', async () => {
  const { proxy, call, reached } = await aStage();
  const rule = proxy.rule({
    match: ({ path }) => path === '/bad',
    fault: { kind: 'Answer', status: 503, body: 'no' },
    times: 1,
  });
  expect(await call('/good')).toMatchObject({ status: 200 });
  expect(await call('/bad')).toEqual({ status: 503, text: 'no' });
  expect(await call('/bad')).toMatchObject({ status: 200 });
  expect(rule.hits).toBe(1);
  expect(reached).toEqual(['GET /good', 'GET /bad']);
});

test('a dropped request never arrives, one whose answer is lost does', async () => {
  const { proxy, call, reached } = await aStage();
  proxy.rule({ match: ({ path }) => path === '/drop', fault: { kind: 'Drop' } });
  proxy.rule({ match: ({ path }) => path === '/lose', fault: { kind: 'LoseAnswer' } });
  await expect(call('/drop', 'x')).rejects.toThrow();
  await expect(call('/lose', 'x')).rejects.toThrow();
  expect(reached).toEqual(['POST /lose']);
});

test('a held request goes on when it is let go', async () => {
  const { proxy, call, reached } = await aStage();
  const hold = proxy.rule({ match: () => true, fault: { kind: 'Hold' } });
  const held = call('/held');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(reached).toEqual([]);
  hold.remove();
  expect(await held).toMatchObject({ status: 200 });
});

test('frozen connections say nothing and stay open, new ones work', async () => {
  const { proxy, dispatcher } = await aStage();
  const stream = await request(`${proxy.server}/drip`, { dispatcher });
  let bytes = 0;
  let ended = false;
  stream.body.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
  });
  stream.body.on('close', () => {
    ended = true;
  });
  stream.body.on('error', () => undefined);
  await new Promise((resolve) => setTimeout(resolve, 200));
  proxy.freeze();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const before = bytes;
  expect(before).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect({ bytes, ended }).toEqual({ bytes: before, ended: false });
  const fresh = new Agent({ connect: { ca: proxy.ca } });
  expect((await request(`${proxy.server}/new`, { dispatcher: fresh })).statusCode).toBe(200);
  await fresh.destroy();
});

test('upgrades pass, freeze and drop', async () => {
  const { proxy, open } = await aStage();
  const socket = await open('/exec');
  socket.send('hello');
  expect(String((await once(socket, 'message'))[0])).toBe('hello');
  expect(proxy.seen.at(-1)).toMatchObject({ kind: 'upgrade', path: '/exec' });
  proxy.freeze();
  let heard = false;
  socket.on('message', () => {
    heard = true;
  });
  socket.send('anybody there?');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect({ heard, state: socket.readyState }).toEqual({ heard: false, state: WebSocket.OPEN });
  proxy.dropAll();
  await once(socket, 'close');
});

test('a refused upgrade and a fault on it are ordinary answers', async () => {
  const { proxy, open } = await aStage();
  await expect(open('/refused')).rejects.toThrow('403');
  proxy.rule({ match: ({ kind }) => kind === 'upgrade', fault: { kind: 'Answer', status: 500 } });
  await expect(open('/exec')).rejects.toThrow('500');
});

test('refusing is like nobody listening, and is mended', async () => {
  const { proxy, call } = await aStage();
  proxy.refuse(true);
  await expect(call('/a')).rejects.toThrow();
  proxy.refuse(false);
  expect(await call('/a')).toMatchObject({ status: 200 });
});
