/*
 * The ways of a list call, against a simulated runtime over a real socket.
 */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { failingLists, hangingLists, oversizedLists } from '../../devtools/simulator/listFaults.ts';
import { PROFILES, type Profile } from '../../devtools/simulator/profiles.ts';
import type { SimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { faultFacts, TestBed } from '../../devtools/simulator/testBed.ts';
import { passes, until } from '../../test/support/waitFor.ts';
import { CriClient } from './client.ts';
import { CONTAINER_LABELS, readContainer } from './items.ts';
import { ListCall, type ListTransport } from './listCall.ts';
import { ListDecoder } from './lists.ts';

const always = { seed: 1 };
const PODS = 20;
const STREAMS = { streamingLists: true };
const PLAIN_ONLY = { streamingLists: false };

let bed: TestBed;
let client: CriClient | undefined;

beforeEach(() => {
  bed = new TestBed();
});
afterEach(async () => {
  client?.close();
  await bed.close();
});

/** A runtime with some containers, whose batches are small. */
async function runtimeOf(profile: Partial<Profile> = {}): Promise<SimulatedRuntime> {
  const runtime = await bed.start({ profile: { ...PROFILES['crio-1.36'], listBatch: 5, ...profile } });
  for (let n = 0; n < PODS; n += 1) runtime.runPod({ name: `pod-${n}`, containers: ['app'] });
  return runtime;
}

interface Asked {
  readonly list: ListCall;
  readonly methods: [ListTransport, string][];
  /** How many items had to be decoded. */
  decoded: number;
  readonly ask: (signal?: AbortSignal) => ReturnType<ListCall['ask']>;
}

/** The containers of a runtime. */
function containersOf(
  runtime: SimulatedRuntime,
  profile: { readonly streamingLists: boolean } = STREAMS,
  timeoutMs = 240_000,
  limits?: ConstructorParameters<typeof ListDecoder>[2],
): Asked {
  const cri = new CriClient(runtime.socket);
  client = cri;
  const methods: Asked['methods'] = [];
  const read = (bytes: Uint8Array) => {
    asked.decoded += 1;
    return readContainer(bytes);
  };
  const list = new ListCall(
    new ListDecoder(read, CONTAINER_LABELS, limits),
    {
      plain: (bounds) => cri.listContainers(bounds),
      streamed: (bounds, take) => cri.streamContainers(bounds, take),
    },
    timeoutMs,
    (method, why) => methods.push([method, why.code]),
  );
  list.setRuntime(profile);
  const asked: Asked = {
    list,
    methods,
    decoded: 0,
    ask: (signal = new AbortController().signal) => list.ask(signal),
  };
  return asked;
}

const calls = (runtime: SimulatedRuntime): string[] =>
  faultFacts(runtime.truth).map(({ detail }) => String(detail).split(' ')[0] ?? '');

const coded = (code: string) => expect.objectContaining({ code });

test('an answer over our limit is requested again as a stream, and so is every later list', async () => {
  const runtime = await runtimeOf();
  runtime.setListFaults([oversizedLists(always)]);
  const { ask, methods } = containersOf(runtime);
  const { items, whole, bytes, start, end } = await ask();
  expect({ items: items.size, whole }).toEqual({ items: PODS, whole: true });
  expect(bytes).toBeGreaterThan(16 * 1024 ** 2);
  expect(end).toBeGreaterThan(start);
  expect((await ask()).items.size).toBe(PODS);
  expect(methods).toEqual([['streamed', 'OVER_OUR_LIMIT']]);
  expect(calls(runtime)).toEqual(['listContainers', 'streamContainers', 'streamContainers']);
});

test("an answer over the runtime's limit is requested again as a stream", async () => {
  const runtime = await runtimeOf({ maxSendBytes: 16 * 1024 ** 2 });
  runtime.setListFaults([oversizedLists(always)]);
  const { ask, methods } = containersOf(runtime);
  expect((await ask()).items.size).toBe(PODS);
  expect(methods).toEqual([['streamed', 'OVER_RUNTIME_LIMIT']]);
});

test('an answer over a limit fails with the name of the limit if the runtime does not stream lists', async () => {
  const runtime = await runtimeOf();
  runtime.setListFaults([oversizedLists(always)]);
  const { ask, methods } = containersOf(runtime, PLAIN_ONLY);
  await expect(ask()).rejects.toEqual(coded('OVER_OUR_LIMIT'));
  expect(calls(runtime)).toEqual(['listContainers']);
  expect(methods).toEqual([]);
});

test('an answer over a limit fails if the runtime turns out not to stream lists, which is tried once', async () => {
  const runtime = await runtimeOf({ listBatch: null });
  runtime.setListFaults([oversizedLists(always)]);
  const { ask, methods } = containersOf(runtime);
  await expect(ask()).rejects.toEqual(coded('OVER_OUR_LIMIT'));
  await expect(ask()).rejects.toEqual(coded('OVER_OUR_LIMIT'));
  expect(methods).toEqual([['plain', 'UNIMPLEMENTED']]);
  runtime.setListFaults([]);
  expect((await ask()).items.size).toBe(PODS);
});

test('a list that fails because the runtime lacks another resource is not streamed', async () => {
  const runtime = await runtimeOf();
  runtime.setListFaults([failingLists(always, status.RESOURCE_EXHAUSTED)]);
  const { ask, methods } = containersOf(runtime);
  await expect(ask()).rejects.toEqual(coded('RESOURCE_EXHAUSTED'));
  expect(methods).toEqual([]);
  expect(calls(runtime)).toEqual(['listContainers']);
});

test('a runtime that does not stream lists, and answers after it was replaced, leaves those of the next one streamed', async () => {
  const runtime = await runtimeOf({ listBatch: null });
  runtime.setListFaults([oversizedLists(always)]);
  const { list, ask, methods } = containersOf(runtime);
  const replaced = ask();
  list.setRuntime(STREAMS);
  await expect(replaced).rejects.toEqual(coded('OVER_OUR_LIMIT'));
  await runtime.goDown('stopped');
  await runtime.comeUp({ ...PROFILES['crio-1.36'], listBatch: 5 });
  await passes(async () => expect((await ask()).items.size).toBe(PODS));
  expect(methods).toEqual([
    ['plain', 'UNIMPLEMENTED'],
    ['streamed', 'OVER_OUR_LIMIT'],
  ]);
});

describe('a streamed list', () => {
  /** A list that is streamed, of a runtime that is well again. */
  async function streamed(
    ...more: [timeoutMs?: number, limits?: ConstructorParameters<typeof ListDecoder>[2]]
  ) {
    const runtime = await runtimeOf();
    runtime.setListFaults([oversizedLists(always)]);
    const asked = containersOf(runtime, STREAMS, ...more);
    await passes(() => asked.ask());
    runtime.setListFaults([]);
    return { runtime, asked };
  }

  test('a streamed list decodes only new and changed items', async () => {
    const { runtime, asked } = await streamed();
    await asked.ask();
    const before = asked.decoded;
    await asked.ask();
    expect(asked.decoded).toBe(before);
    runtime.runPod({ name: 'one-more', containers: ['app'] });
    expect((await asked.ask()).items.size).toBe(PODS + 1);
    expect(asked.decoded).toBe(before + 1);
  });

  test('a streamed list that breaks after its first batch fails, and the next one is streamed again', async () => {
    const { runtime, asked } = await streamed();
    runtime.setListFaults([failingLists(always, status.UNAVAILABLE)]);
    await expect(asked.ask()).rejects.toEqual(coded('UNAVAILABLE'));
    runtime.setListFaults([]);
    expect((await asked.ask()).items.size).toBe(PODS);
    expect(asked.methods).toHaveLength(1);
  });

  test('a streamed list ends at our own deadline', async () => {
    const { runtime, asked } = await streamed(10_000);
    runtime.setListFaults([hangingLists(always)]);
    await expect(asked.ask()).rejects.toEqual(coded('DEADLINE_EXCEEDED'));
  });

  test('a streamed list ends at once when the agent stops', async () => {
    const { runtime, asked } = await streamed();
    runtime.setListFaults([hangingLists(always)]);
    const stop = new AbortController();
    const ended = expect(asked.ask(stop.signal)).rejects.toEqual(coded('CANCELLED'));
    await until(() => faultFacts(runtime.truth, 'list_hang').length > 0);
    stop.abort();
    await ended;
  });

  test('lists are plain from then on if the runtime turns out not to stream them', async () => {
    const { runtime, asked } = await streamed();
    await runtime.goDown('stopped');
    await runtime.comeUp({ ...PROFILES['crio-1.33'] });
    await passes(() => asked.ask());
    expect(asked.methods.map(([method]) => method)).toEqual(['streamed', 'plain']);
    runtime.setListFaults([oversizedLists(always)]);
    await expect(asked.ask()).rejects.toEqual(coded('OVER_OUR_LIMIT'));
    expect(asked.methods).toHaveLength(2);
  });

  test('a list is plain again when another runtime answers', async () => {
    const { runtime, asked } = await streamed();
    asked.list.setRuntime(STREAMS);
    runtime.setListFaults([failingLists(always, status.INTERNAL)]);
    await expect(asked.ask()).rejects.toEqual(coded('INTERNAL'));
    expect(calls(runtime).at(-1)).toBe('listContainers');
  });

  test('an endless streamed list is refused at the limit, and the next one is read', async () => {
    const { runtime, asked } = await streamed(240_000, { items: 1000, bytes: 18 * 1024 ** 2 });
    runtime.setListFaults([oversizedLists(always, 30 * 1024 ** 2)]);
    await expect(asked.ask()).rejects.toEqual(coded('TOO_MANY_BYTES'));
    runtime.setListFaults([]);
    expect((await asked.ask()).items.size).toBe(PODS);
    for (let n = 0; n < 1000; n += 1) runtime.runPod({ name: `more-${n}`, containers: ['app'] });
    await expect(asked.ask()).rejects.toEqual(coded('TOO_MANY_ITEMS'));
  });
});

test('each failure of a plain list has its own code', async () => {
  const runtime = await runtimeOf();
  const { ask } = containersOf(runtime);
  for (const code of ['UNAVAILABLE', 'UNIMPLEMENTED', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED'] as const) {
    runtime.setListFaults([failingLists(always, status[code])]);
    await expect(ask()).rejects.toEqual(coded(code));
  }
  runtime.setListFaults([hangingLists(always)]);
  await expect(containersOf(runtime, STREAMS, 500).ask()).rejects.toEqual(coded('DEADLINE_EXCEEDED'));
});
