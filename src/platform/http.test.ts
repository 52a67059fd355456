import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type HttpServer, serveHttp } from './http.ts';

let server: HttpServer | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.stop();
});

test('open idle connections never keep a probe out', async () => {
  const live = () => ({ here: () => null });
  const opened = await serveHttp({
    address: '127.0.0.1:0',
    metrics: async () => '',
    live,
    ready: () => ({}),
  });
  server = opened;
  for (let i = 0; i < 200; i += 1) {
    const socket = connect(opened.port, '127.0.0.1');
    // It is cut off to make room.
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
  }
  const answer = await fetch(`http://127.0.0.1:${opened.port}/livez`);
  expect([answer.status, await answer.text()]).toEqual([200, 'ok here\n']);
});
