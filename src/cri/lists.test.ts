import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codePoint } from '../../test/support/codePoint.ts';
import { CONTAINER_LABELS, readContainer, readSandbox, SANDBOX_LABELS } from './items.ts';
import { EndlessAnswer, ListDecoder } from './lists.ts';
import { MalformedMessage } from './malformed.ts';
import {
  Container,
  ContainerState,
  ListContainersResponse,
  ListPodSandboxResponse,
  PodSandbox,
  PodSandboxState,
} from './runtime.ts';

const container = (id: string, state: ContainerState = ContainerState.CONTAINER_RUNNING): Container =>
  Container.fromPartial({
    id,
    podSandboxId: 's1',
    metadata: { name: 'app', attempt: 0 },
    state,
    labels: { 'io.kubernetes.pod.uid': 'u1' },
  });

const answer = (containers: readonly Container[]): Buffer =>
  Buffer.from(ListContainersResponse.encode({ containers: [...containers] }).finish());

/** A reader that counts how many items it had to decode. */
function counting() {
  const decoded = { items: 0 };
  const reader = new ListDecoder((bytes) => {
    decoded.items += 1;
    return readContainer(bytes);
  }, CONTAINER_LABELS);
  return { reader, decoded };
}

/** Field 1 of an answer: an item of these bytes. */
const item = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([0x0a, bytes.length]), bytes]);

const encoded = (value: Container): Buffer => Buffer.from(Container.encode(value).finish());

test('unchanged items are decoded once, in whatever order they come', () => {
  const { reader, decoded } = counting();
  const all = ['a', 'b', 'c', 'd'].map((id) => container(id));
  const first = reader.read(answer(all));
  const second = reader.read(answer([...all].reverse()));
  expect(decoded.items).toBe(4);
  expect(new Map([...second.items].sort())).toEqual(new Map([...first.items].sort()));
});

test('an unchanged item is the same value as before, not a copy', () => {
  const { reader } = counting();
  const first = reader.read(answer([container('a')])).items;
  expect(reader.read(answer([container('a')])).items.get('a')).toBe(first.get('a'));
});

test('an item keeps no more bytes in memory than it has, whatever comes between it and the next one', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const used = () => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  const { reader } = counting();
  const all: Container[] = [];
  const before = used();
  for (let n = 0; n < 500; n += 1) {
    all.push(container(`c${n}`));
    reader.read(answer(all));
    for (let i = 0; i < 4; i += 1) Buffer.from('between'.repeat(400));
  }
  // 8 KiB of Node's pool for each would be 4 MiB. Collected memory is not always free at once.
  await expect.poll(() => used() - before, { timeout: 240_000 }).toBeLessThan(1_000_000);
  expect(reader.read(answer(all)).items.size).toBe(500);
});

test('an item is decoded again when a byte differs, and when it returns', () => {
  const { reader, decoded } = counting();
  reader.read(answer([container('a')]));
  const changed = reader.read(answer([container('a', ContainerState.CONTAINER_EXITED)])).items;
  expect(changed.get('a')?.state).toBe('exited');
  expect(reader.read(answer([])).items.size).toBe(0);
  reader.read(answer([container('a', ContainerState.CONTAINER_EXITED)]));
  expect(decoded.items).toBe(3);
});

test('an item is unchanged if only the entries of its maps are reordered, as Go runtimes do', () => {
  const { reader, decoded } = counting();
  const labels = { a: '1', b: '2', c: '3' };
  const turned = Object.fromEntries(Object.entries(labels).reverse());
  reader.read(answer([{ ...container('a'), labels, annotations: labels }]));
  reader.read(answer([{ ...container('a'), labels: turned, annotations: turned }]));
  expect(decoded.items).toBe(1);
});

test('an item is decoded again when one of its maps has grown', () => {
  const { reader, decoded } = counting();
  reader.read(answer([container('a')]));
  reader.read(answer([{ ...container('a'), annotations: { b: '2' } }]));
  expect(decoded.items).toBe(2);
});

test('an item with a map before the state is compared as a whole', () => {
  const state = (value: ContainerState): Buffer => Buffer.from([0x30, value]);
  const head = encoded(Container.fromPartial({ id: 'a' }));
  const map = encoded(Container.fromPartial({ labels: { b: '2' } }));
  const { reader } = counting();
  const read = (value: ContainerState) =>
    reader.read(item(Buffer.concat([head, map, state(value)]))).items.get('a')?.state;
  expect(read(ContainerState.CONTAINER_RUNNING)).toBe('running');
  expect(read(ContainerState.CONTAINER_EXITED)).toBe('exited');
});

test('an item with a field that cannot be split is compared as a whole', () => {
  const group = Buffer.from([0x7b, 0x7c]);
  const { reader, decoded } = counting();
  const bytes = item(Buffer.concat([encoded(container('a')), group]));
  expect(reader.read(bytes).items.get('a')?.state).toBe('running');
  expect(reader.read(bytes).items.get('a')?.state).toBe('running');
  expect(decoded.items).toBe(1);
});

test('remembered items do not depend on the bytes of the answer, which may be reused', () => {
  const { reader } = counting();
  const bytes = answer([container('a')]);
  reader.read(bytes);
  bytes.fill(0);
  expect(reader.read(answer([container('a')])).items.get('a')?.state).toBe('running');
});

test('a decoder that remembers earlier answers reads the same as a new one', () => {
  const states = fc.constantFrom(
    ContainerState.CONTAINER_CREATED,
    ContainerState.CONTAINER_RUNNING,
    ContainerState.CONTAINER_EXITED,
    ContainerState.CONTAINER_UNKNOWN,
  );
  const anyId = fc.oneof(
    fc.constantFrom('a', 'b', 'c'),
    fc.string({ minLength: 1, maxLength: 300, unit: codePoint }),
  );
  const anyAnswer = fc.array(fc.tuple(anyId, states), { maxLength: 6 });
  const anyAnswers = fc.array(
    fc.record({ shown: anyAnswer, times: fc.integer({ min: 1, max: 2 }), breaksOff: fc.boolean() }),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(anyAnswers, (answers) => {
      const { reader } = counting();
      for (const { shown, times, breaksOff } of answers) {
        const bytes = answer(shown.map(([id, state]) => container(id, state)));
        if (breaksOff) reader.begin().add(bytes);
        else
          for (let i = 0; i < times; i += 1)
            expect(reader.read(bytes)).toEqual(counting().reader.read(bytes));
      }
    }),
    { numRuns: 300 },
  );
});

describe('the items of an answer', () => {
  const of = (reader: ListDecoder, ...ids: readonly string[]) =>
    reader.read(answer(ids.map((id) => container(id)))).items;

  test('the items of an unchanged answer are the same map as before', () => {
    const { reader } = counting();
    const before = of(reader, 'a', 'b');
    expect(of(reader, 'b', 'a')).toBe(before);
    expect(of(reader, 'b', 'a', 'b')).toBe(before);
  });

  test('a new map holds the items if one was added, removed or changed, and the previous map is unchanged', () => {
    const { reader } = counting();
    const before = of(reader, 'a', 'b');
    for (const ids of [['a', 'b', 'c'], ['a', 'b'], ['a'], ['b']])
      expect([...of(reader, ...ids).keys()].sort()).toEqual(ids);
    const changed = reader.read(answer([container('b', ContainerState.CONTAINER_EXITED)])).items;
    expect(changed.get('b')?.state).toBe('exited');
    expect([...before].map(([id, { state }]) => [id, state])).toEqual([
      ['a', 'running'],
      ['b', 'running'],
    ]);
  });
});

test('an item whose id is not its first field is read', () => {
  const bytes = encoded(container('a'));
  const id = bytes.subarray(0, 3);
  const turned = item(Buffer.concat([bytes.subarray(3), id]));
  const { reader, decoded } = counting();
  expect(reader.read(turned).items.get('a')?.state).toBe('running');
  expect(reader.read(turned).items.get('a')?.state).toBe('running');
  expect(decoded.items).toBe(2);
});

test('an id longer than a one-byte length is read', () => {
  const { reader } = counting();
  const long = 'x'.repeat(200);
  expect([...reader.read(answer([container(long)])).items.keys()]).toEqual([long]);
  expect([...reader.read(answer([container(long)])).items.keys()]).toEqual([long]);
});

test('the last of two items with one id counts', () => {
  const { reader } = counting();
  const { items } = reader.read(answer([container('a'), container('a', ContainerState.CONTAINER_EXITED)]));
  expect([...items].map(([id, { state }]) => [id, state])).toEqual([['a', 'exited']]);
});

test('unknown fields are skipped in every wire type', () => {
  const { reader } = counting();
  const unknown = Buffer.from([
    0x10, 0xff, 0x01, 0x1a, 0x02, 1, 2, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2d, 1, 2, 3, 4,
  ]);
  expect([...reader.read(Buffer.concat([unknown, answer([container('a')]), unknown])).items.keys()]).toEqual([
    'a',
  ]);
});

test('a malformed item is left out, and the answer is not whole', () => {
  const { reader } = counting();
  const broken = item(Buffer.from([0x0a, 0x7f, 1]));
  const { items, whole } = reader.read(Buffer.concat([broken, answer([container('a')])]));
  expect([...items.keys()]).toEqual(['a']);
  expect({ whole, refused: reader.malformedItems }).toEqual({ whole: false, refused: 1 });
  expect(reader.read(answer([container('a')])).whole).toBe(true);
  expect(reader.malformedItems).toBe(1);
});

test('an item without a usable id is left out, and the answer is still whole', () => {
  const { reader } = counting();
  const { items, whole } = reader.read(
    answer([container(''), container('x'.repeat(257)), container('a\0b')]),
  );
  expect({ items: items.size, whole, refused: reader.malformedItems }).toEqual({
    items: 0,
    whole: true,
    refused: 3,
  });
});

describe('an answer in several messages', () => {
  const inMessages = (reader: ListDecoder, ...messages: (readonly Container[])[]) => {
    const reading = reader.begin();
    for (const message of messages) reading.add(answer(message));
    return reading.end();
  };

  test('an answer in several messages reads like one message, and unchanged items are not decoded', () => {
    const { reader, decoded } = counting();
    const all = ['a', 'b', 'c'].map((id) => container(id));
    const whole = reader.read(answer(all));
    expect(inMessages(reader, all.slice(2), [], all.slice(0, 2)).items).toEqual(whole.items);
    expect(reader.read(answer(all))).toEqual(whole);
    expect(decoded.items).toBe(3);
  });

  test('an answer in several messages is whole only if each of them is', () => {
    const { reader } = counting();
    const reading = reader.begin();
    reading.add(item(Buffer.from([0x0a, 0x7f, 1])));
    reading.add(answer([container('a')]));
    expect(reading.end().whole).toBe(false);
  });

  test('an answer that does not end leaves the remembered items unchanged', () => {
    const { reader, decoded } = counting();
    reader.read(answer([container('a')]));
    reader.begin().add(answer([container('a', ContainerState.CONTAINER_EXITED)]));
    expect(reader.read(answer([container('a')])).items.get('a')?.state).toBe('running');
    expect(decoded.items).toBe(2);
  });
});

test('an abandoned answer accepts no more messages, so that two answers never mix', () => {
  const { reader } = counting();
  const givenUp = reader.begin();
  const next = reader.begin();
  expect(() => givenUp.add(answer([container('a')]))).toThrow('another answer was begun');
  expect(() => givenUp.end()).toThrow('another answer was begun');
  expect(next.end().items.size).toBe(0);
});

describe('an answer without end is refused', () => {
  const limited = (items: number, bytes: number) =>
    new ListDecoder(readContainer, CONTAINER_LABELS, { items, bytes });
  const one = answer([container('a')]);

  test('an endless answer is refused by its number of items, unusable and repeated ones included', () => {
    const code = { code: 'TOO_MANY_ITEMS' };
    const three = answer([container('a'), container('b'), container('c')]);
    expect(limited(3, 1000).read(three).items.size).toBe(3);
    expect(() => limited(2, 1000).read(three)).toThrow(expect.objectContaining(code));
    const same = limited(2, 1000).begin();
    same.add(answer([container('')]));
    same.add(one);
    expect(() => same.add(one)).toThrow(expect.objectContaining(code));
  });

  test('an endless answer is refused by its bytes, whatever they contain', () => {
    const reading = limited(10, 2 * one.length).begin();
    reading.add(one);
    reading.add(one);
    expect(() => reading.add(Buffer.from([0x10, 0x01]))).toThrow(
      expect.objectContaining({ code: 'TOO_MANY_BYTES' }),
    );
  });

  test('a refused endless answer leaves the remembered items unchanged', () => {
    let decoded = 0;
    const reader = new ListDecoder(
      (bytes) => {
        decoded += 1;
        return readContainer(bytes);
      },
      CONTAINER_LABELS,
      { items: 1, bytes: 1000 },
    );
    reader.read(one);
    expect(() => reader.read(answer([container('b'), container('c')]))).toThrow(EndlessAnswer);
    reader.read(one);
    expect(decoded).toBe(2);
  });
});

test('items beyond the remembered bytes are read and decoded each time', () => {
  const { reader, decoded } = counting();
  const large = (id: string) => ({ ...container(id), imageRef: 'x'.repeat(3 * 1024 ** 2) });
  const ids = [...'abcdefghijk'];
  const all = answer(ids.map(large));
  expect([...reader.read(all).items.keys()]).toEqual(ids);
  expect([...reader.read(all).items.keys()]).toEqual(ids);
  expect(decoded.items).toBe(ids.length + 1);
  const fewer = ids.slice(0, -1);
  expect([...reader.read(answer(fewer.map(large))).items.keys()]).toEqual(fewer);
});

describe('an answer is refused as a whole', () => {
  const good = answer([container('a')]);
  const bad: Readonly<Record<string, Buffer>> = {
    'that ends inside an item': good.subarray(0, good.length - 1),
    'that ends inside a number': Buffer.concat([good, Buffer.from([0x0a, 0x80])]),
    'with a number of eleven bytes': Buffer.concat([good, Buffer.from([0x0a, ...Array(10).fill(0xff), 1])]),
    'with a length beyond every memory': Buffer.concat([
      good,
      Buffer.from([0x0a, ...Array(9).fill(0xff), 1]),
    ]),
    'with a wire type that does not exist': Buffer.from([0x0f]),
    'with the start of a group': Buffer.from([0x0b]),
    'whose fixed field is cut': Buffer.from([0x21, 1, 2, 3]),
  };

  test.each(Object.entries(bad))(
    'an answer %s is refused, and the remembered items are unchanged',
    (_, bytes) => {
      const { reader, decoded } = counting();
      reader.read(good);
      expect(() => reader.read(bytes)).toThrow(MalformedMessage);
      reader.read(good);
      expect(decoded.items).toBeLessThanOrEqual(1);
    },
  );

  test('any bytes are read or refused as malformed, and no other error is thrown', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const { reader } = counting();
        try {
          reader.read(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedMessage);
        }
      }),
      { numRuns: 500 },
    );
  });
});

test('sandboxes are read like containers', () => {
  const sandbox = PodSandbox.fromPartial({
    id: 's1',
    metadata: { name: 'web', uid: 'u1', namespace: 'shop', attempt: 2 },
    state: PodSandboxState.SANDBOX_NOTREADY,
  });
  const bytes = Buffer.from(ListPodSandboxResponse.encode({ items: [sandbox] }).finish());
  expect(new ListDecoder(readSandbox, SANDBOX_LABELS).read(bytes).items.get('s1')).toEqual({
    object: {
      id: 's1',
      sandbox: 's1',
      isSandbox: true,
      podUid: 'u1',
      namespace: 'shop',
      pod: 'web',
      container: '',
      attempt: 2,
    },
    state: 'exited',
  });
});
