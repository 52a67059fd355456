/*
 * Streams of real calls, over a real socket.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter, once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestBed } from '../../devtools/simulator/testBed.ts';
import { until } from '../../test/support/waitFor.ts';
import { CriClient } from './client.ts';

let bed: TestBed;
const streams: EventEmitter[] = [];
const started = (message: unknown): void => {
  const stream: unknown = Reflect.get(Object(message), 'stream');
  if (stream instanceof EventEmitter) streams.push(stream);
};

beforeEach(() => {
  bed = new TestBed();
  subscribe('http2.client.stream.created', started);
});
afterEach(async () => {
  unsubscribe('http2.client.stream.created', started);
  streams.length = 0;
  await bed.close();
});

const listenersOf = (stream: EventEmitter): number =>
  stream.eventNames().reduce((sum, name) => sum + stream.listenerCount(name), 0);

test('the stream of an ended call keeps no listener but one for errors', async () => {
  const runtime = await bed.start();
  const client = new CriClient(runtime.socket);
  await client.listContainers({ timeoutMs: 20_000 });
  await client.listSandboxes({ timeoutMs: 20_000 });
  expect(streams).toHaveLength(2);
  await until(() => streams.every((stream) => listenersOf(stream) === 1));
  for (const stream of streams) expect(stream.eventNames()).toEqual(['error']);
  client.close();
});

test('an open stream is read to its end, whatever other calls end meanwhile', async () => {
  const runtime = await bed.start();
  const client = new CriClient(runtime.socket);
  const events = client.events();
  const received: Buffer[] = [];
  events.on('data', (bytes: Buffer) => received.push(bytes));
  const ended = once(events, 'error');
  await until(() => streams.length === 1);
  await client.version(20_000);
  await turn();
  runtime.runPod({ name: 'a', containers: ['app'] });
  await until(() => received.length === 4);
  await runtime.goDown();
  expect((await ended)[0]).toMatchObject({ code: 14 });
  client.close();
});

test('a stream that the other side has closed is still read to its end', async () => {
  const server = createServer((_, response) => response.end('answer'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const stream = session.request();
    let read = '';
    let ended = false;
    stream.on('data', (bytes: Buffer) => {
      read += bytes.toString();
    });
    stream.on('end', () => {
      ended = true;
    });
    stream.pause();
    await until(() => stream.closed);
    await turn();
    await turn();
    stream.resume();
    await until(() => stream.destroyed);
    expect([read, ended]).toEqual(['answer', true]);
    await until(() => listenersOf(stream) === 1);
  } finally {
    session.close();
    server.close();
  }
});
