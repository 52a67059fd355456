import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Client,
  credentials,
  Metadata,
  Server,
  type ServerUnaryCall,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ContainerEventResponse, VersionRequest, VersionResponse } from '../../src/cri/runtime.ts';
import { passes, until } from '../../test/support/waitFor.ts';
import { CRI_METHODS, type CriTestClient, connectCri } from './criClient.ts';
import { FrameSplitter } from './grpcFrames.ts';
import { listenOn, type SocketListener } from './listener.ts';
import { createPodDriver } from './podDriver.ts';
import { type CriProxy, type CriProxyOptions, startCriProxy } from './proxy.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from './runtime.ts';

let folder: string;
let runtime: SimulatedRuntime;
const endings: (() => Promise<void> | void)[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-proxy-'));
  runtime = await startSimulatedRuntime({ socket: join(folder, 'runtime.sock') });
  endings.push(() => runtime.stop());
});

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
  rmSync(folder, { recursive: true });
});

async function proxied(
  options: Partial<CriProxyOptions> = {},
): Promise<{ proxy: CriProxy; client: CriTestClient }> {
  const proxy = await startCriProxy({
    upstream: runtime.socket,
    socket: join(folder, 'proxy.sock'),
    ...options,
  });
  const client = connectCri(proxy.socket);
  endings.push(
    () => proxy.stop(),
    () => client.close(),
  );
  return { proxy, client };
}

interface ProxiedSubscription {
  readonly events: ContainerEventResponse[];
  readonly ended: Promise<number>;
  readonly cancel: () => void;
}

async function subscribe(client: CriTestClient): Promise<ProxiedSubscription> {
  const before = runtime.subscribers;
  const events: ContainerEventResponse[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  const stream = client.events();
  stream.on('data', (event: ContainerEventResponse) => events.push(event));
  stream.on('error', (error: ServiceError) => resolve(error.code));
  stream.on('end', () => resolve(status.OK));
  await until(() => runtime.subscribers > before);
  return { events, ended, cancel: () => stream.cancel() };
}

const version = (client: CriTestClient) => client.call('version', { version: 'v1' });

describe('calls', () => {
  test('pass with their responses', async () => {
    const { client } = await proxied();
    expect(await version(client)).toMatchObject({
      runtimeName: 'containerd',
      runtimeVersion: '2.1.9+unknown',
    });
  });

  test('pass with the status and the message of their failure', async () => {
    const { client } = await proxied();
    const call = client.call('containerStatus', { containerId: 'gone', verbose: false });
    await expect(call).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: 'could not find container "gone": not found',
    });
  });

  test('to a runtime that does not implement them end with UNIMPLEMENTED', async () => {
    await runtime.stop();
    runtime = await startSimulatedRuntime({ socket: runtime.socket, profile: 'containerd-1.6' });
    endings.push(() => runtime.stop());
    const { client } = await proxied();
    const { promise, resolve } = Promise.withResolvers<ServiceError>();
    client.events().on('error', resolve);
    expect((await promise).code).toBe(status.UNIMPLEMENTED);
  });

  test('pass with responses as large as a runtime may send', async () => {
    const annotations = { filler: 'x'.repeat(1_000_000) };
    for (let n = 0; n < 15; n += 1) runtime.pods.runPod({ name: `pod-${n}`, annotations });
    const { client } = await proxied();
    const { items } = await client.call('listPodSandbox', { filter: undefined });
    expect(items).toHaveLength(15);
  });

  test('to a runtime that is down end with UNAVAILABLE, and pass again when it is back', async () => {
    const { client } = await proxied();
    await version(client);
    await runtime.goDown();
    await expect(version(client)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await runtime.comeUp();
    expect(await version(client)).toMatchObject({ runtimeName: 'containerd' });
  });

  test('are refused with the configured status until the refusal is lifted', async () => {
    const { client, proxy } = await proxied();
    proxy.refuse(status.RESOURCE_EXHAUSTED);
    await expect(version(client)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    proxy.refuse(null);
    await version(client);
  });

  test('calls of held methods wait until they are released, and the others pass', async () => {
    const { proxy, client } = await proxied();
    proxy.hold('ListPodSandbox', 'ListContainers');
    let answered = false;
    const held = client.call('listPodSandbox', { filter: undefined }).then(() => {
      answered = true;
    });
    expect((await version(client)).runtimeName).toBe('containerd');
    await expect(
      client.call('listContainers', { filter: undefined }, { deadline: Date.now() + 100 }),
    ).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
    expect(answered).toBe(false);
    proxy.hold();
    await held;
    await client.call('listContainers', { filter: undefined });
  });

  test('reach the proxy again on the same path after a restart', async () => {
    const { client, proxy } = await proxied();
    await version(client);
    await proxy.stop();
    await expect(version(client)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await proxy.listen();
    await passes(() => version(client));
  });
});

/** The status of Version, called by a client with this `:authority` over its only connection. */
async function statusesFor(authority: string, calls: number): Promise<unknown[]> {
  const session = connect('http://localhost', {
    createConnection: () => connectSocket(join(folder, 'proxy.sock')),
  });
  endings.push(() => session.destroy());
  const answers: unknown[] = [];
  for (let n = 0; n < calls; n += 1) {
    const call = session.request({
      ':method': 'POST',
      ':path': CRI_METHODS.version.path,
      ':authority': authority,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.end(Buffer.alloc(5));
    call.resume();
    const [trailers] = await once(call, 'trailers');
    answers.push(trailers['grpc-status']);
  }
  return answers;
}

test.each([
  ['/run/containerd/containerd.sock', 'as kubelets up to 1.28 send it, Huffman-coded'],
  ['/~~~~/~', 'which is sent as it is, because its code is longer'],
  ['localhost', 'as later kubelets send it'],
  ['%2Frun%2Fcontainerd%2Fcontainerd.sock', 'as kubelets 1.29 and 1.30 send it'],
])('clients with the :authority %s, %s, are served', async (authority) => {
  await proxied();
  expect(await statusesFor(authority, 3)).toEqual(['0', '0', '0']);
});

describe('metadata, deadlines and cancellation', () => {
  interface Seen {
    readonly metadata: Metadata;
    readonly deadline: unknown;
    cancelled: boolean;
  }

  /** A server that never answers, and remembers what it was asked. */
  async function mute(): Promise<{ readonly seen: Seen[]; readonly client: CriTestClient }> {
    const seen: Seen[] = [];
    const server = new Server();
    const { path, responseSerialize, requestDeserialize } = CRI_METHODS.version;
    const handler = (call: ServerUnaryCall<VersionRequest, VersionResponse>) => {
      const entry = { metadata: call.metadata, deadline: call.getDeadline(), cancelled: false };
      call.on('cancelled', () => {
        entry.cancelled = true;
      });
      seen.push(entry);
    };
    server.register<VersionRequest, VersionResponse>(
      path,
      handler,
      responseSerialize,
      requestDeserialize,
      'unary',
    );
    const listener: SocketListener = await listenOn(join(folder, 'mute.sock'), server);
    endings.push(() => listener.close());
    const { client } = await proxied({ upstream: join(folder, 'mute.sock') });
    return { seen, client };
  }

  test('text and binary metadata reach the runtime', async () => {
    const { seen } = await mute();
    const client = new Client(`unix:${join(folder, 'proxy.sock')}`, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set('x-trace', 'one');
    metadata.set('x-trace-bin', Buffer.from([0, 255, 10]));
    const { path, requestSerialize, responseDeserialize } = CRI_METHODS.version;
    const request = { version: '' };
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, {}, () => {});
    await until(() => seen.length === 1);
    client.close();
    expect(seen[0]?.metadata.get('x-trace')).toEqual(['one']);
    expect(seen[0]?.metadata.get('x-trace-bin')).toEqual([Buffer.from([0, 255, 10])]);
  });

  test('a deadline and the cancellation that follows reach the runtime', async () => {
    const { seen, client } = await mute();
    let called = 0;
    let deadline = 0;
    // On a busy machine a call may end before it has reached the runtime.
    for (let waitMs = 2_000; seen.length === 0; waitMs *= 2) {
      called = Date.now();
      deadline = called + waitMs;
      await expect(client.call('version', { version: '' }, { deadline })).rejects.toMatchObject({
        code: status.DEADLINE_EXCEEDED,
      });
    }
    expect(Number(seen[0]?.deadline)).toBeGreaterThan(deadline - 500);
    // The deadline is the time that is left; it counts from the arrival.
    expect(Number(seen[0]?.deadline)).toBeLessThanOrEqual(deadline + (Date.now() - called));
    await until(() => seen[0]?.cancelled === true);
  });

  test('a cancelled subscription is cancelled at the runtime too', async () => {
    const { client, proxy } = await proxied();
    const { cancel } = await subscribe(client);
    expect(proxy.streams).toBe(1);
    cancel();
    await until(() => runtime.subscribers === 0 && proxy.streams === 0);
  });

  test('the connection to the runtime closes with the client', async () => {
    const { proxy, client } = await proxied();
    await subscribe(client);
    await proxy.stop();
    await until(() => runtime.subscribers === 0);
  });
});

describe('events', () => {
  test('are delivered or dropped one by one, and recorded either way', async () => {
    const { client, proxy } = await proxied({
      filter: ({ containerEventType }) => (containerEventType === 2 ? 'drop' : 'deliver'),
    });
    const { events } = await subscribe(client);
    const driver = createPodDriver({ socket: runtime.socket });
    endings.push(() => driver.close());
    const pod = await driver.runToEnd();
    await until(() => events.length === 6);
    expect(proxy.dropped.map(({ event }) => event.containerId)).toEqual([pod.containers['app'], pod.sandbox]);
    expect(proxy.delivered.map(({ event }) => event)).toEqual(events);
  });

  test('are repeated, or held back until the filter releases them, while later ones pass', async () => {
    const held = Promise.withResolvers<void>();
    const { client, proxy } = await proxied({
      filter: ({ containerEventType }) => (containerEventType === 1 ? { until: held.promise } : 'twice'),
    });
    const { events } = await subscribe(client);
    const { id } = runtime.pods.runPod({ name: 'web' });
    const typesOf = () =>
      events.flatMap((event) => (event.containerId === id ? event.containerEventType : []));
    await until(() => typesOf().length === 2);
    held.resolve();
    await until(() => typesOf().length === 3);
    expect(typesOf()).toEqual([0, 0, 1]);
    expect(proxy.delivered.map(({ event }) => event)).toEqual(events);
  });

  test('are not delayed by a client that stops reading, because it is cut off', async () => {
    const { client, proxy } = await proxied({ queueBytes: 200_000 });
    const slow = client.events();
    slow.on('error', () => {});
    slow.once('data', () => slow.pause());
    await until(() => runtime.subscribers === 1);
    const annotations = { filler: 'x'.repeat(20_000) };
    const { events } = await subscribe(connected(proxy));
    let pods = 0;
    while (proxy.streams === 2 && pods < 3000) {
      pods += 1;
      runtime.pods.runPod({ name: `pod-${pods}`, annotations });
      await until(() => events.length === 2 * pods);
    }
    expect(proxy.streams).toBe(1);
  });

  function connected(proxy: CriProxy): CriTestClient {
    const client = connectCri(proxy.socket);
    endings.push(() => client.close());
    return client;
  }

  test.each([status.UNAVAILABLE, status.INTERNAL, status.OK])(
    'end with status %d when they are broken, before and after the first message',
    async (code) => {
      const { client, proxy } = await proxied();
      const silent = await subscribe(client);
      proxy.breakStreams(code);
      expect(await silent.ended).toBe(code);
      const subscriber = await subscribe(client);
      runtime.runPod({ name: 'web' });
      await until(() => subscriber.events.length === 2);
      proxy.breakStreams(code);
      expect(await subscriber.ended).toBe(code);
      await until(() => runtime.subscribers === 0);
    },
  );

  test('end with UNAVAILABLE when the runtime is killed', async () => {
    const { client } = await proxied();
    const { ended } = await subscribe(client);
    await runtime.goDown();
    expect(await ended).toBe(status.UNAVAILABLE);
  });
});

test('frames are found however the chunks are split', () => {
  const message = (text: string) => {
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(text.length, 1);
    return Buffer.concat([prefix, Buffer.from(text)]);
  };
  const all = Buffer.concat([message('one'), message(''), message('three')]);
  for (let size = 1; size <= all.length; size += 1) {
    const splitter = new FrameSplitter();
    const found: string[] = [];
    for (let at = 0; at < all.length; at += size) {
      found.push(...splitter.push(all.subarray(at, at + size)).map(({ payload }) => payload.toString()));
    }
    expect(found).toEqual(['one', '', 'three']);
  }
});
