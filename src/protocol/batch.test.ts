import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ACCEPTED_VERSIONS,
  type Batch,
  batchId,
  decodeBatch,
  encodeBatch,
  MAX_BATCH_RECORDS,
  MAX_DECODED_BYTES,
  readObjects,
  type SignedHead,
} from './batch.ts';
import { type EvidenceRecord, parseRecord } from './record.ts';
import { offset } from './units.ts';

const EPOCH = '2f1c9a52-3f0a-4f6e-8d5b-0c6f2f8f7a11';
const OTHER = '9b0d8f0e-52a7-4b9e-a1c1-7d3c2a1b4e55';

const anEvent = (n: number): EvidenceRecord => ({
  type: 'container_event',
  t: offset(n),
  containerId: `c${n}`,
  eventType: 1,
  createdNs: '1700000000000000000',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
});

const anObject = (id: string) => ({
  id,
  sandbox: 's1',
  isSandbox: false,
  podUid: 'u1',
  namespace: 'shop',
  pod: 'web',
  container: 'app',
  attempt: 0,
});

const aBatch = (more: Partial<Batch> = {}): Batch => ({
  v: 1,
  cluster: 'prod',
  node: 'node-1.example',
  nodeUid: '',
  bootId: 'b',
  epoch: EPOCH,
  startedMono: 1_000_000,
  incarnation: 7,
  prev: null,
  held: [{ epoch: EPOCH, incarnation: 7, last: 3 }],
  ackGeneration: 1,
  context: {
    no: 1,
    runtime: { name: 'containerd', version: '2.1.9' },
    kubelet: '',
    agent: '0.1.0',
    settings: { relistPeriod: 5e6, overdueAfter: 2e6, missedAfter: 30e6, lateAfter: 1e6 },
  },
  first: 1,
  last: 2,
  oldestSeq: 1,
  lost: [],
  mono0: 5,
  wall0: 1_700_000_000_000_000,
  objects: [anObject('c1')],
  records: [anEvent(1), anEvent(2)],
  ...more,
});

const aHead = (more: Partial<SignedHead> = {}): SignedHead => ({
  ...{ from: 1, at: 2, events: 'A'.repeat(43), findings: 'A'.repeat(43) },
  ...{ sig: `${'A'.repeat(86)}==`, hints: 'AAA=' },
  ...more,
});

const compress = promisify(zstdCompress);
const packed = async (text: string | Buffer) => ({ z: (await compress(text)).toString('base64') });
const packedJson = (value: unknown) => packed(JSON.stringify(value));

async function refusal(data: unknown) {
  const decoded = await decodeBatch(data);
  if (decoded.ok) throw new Error('the input was accepted');
  return decoded;
}

describe('encoding a batch', () => {
  test('a decoded batch equals the encoded one', async () => {
    const batch = aBatch({ prev: OTHER, lost: [{ from: 10, to: 12, cause: 'spool_full' }] });
    expect(await decodeBatch(await encodeBatch(batch))).toMatchObject({ ok: true, value: batch });
  });

  test('a batch carries any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 100 }), async (text) => {
        const batch = aBatch({ objects: [{ ...anObject('c1'), pod: text }] });
        const decoded = await decodeBatch(await encodeBatch(batch));
        expect(decoded).toMatchObject({ ok: true, value: batch });
      }),
      { numRuns: 50 },
    );
  });

  test('a batch of 500 events takes less than 40 bytes an event', async () => {
    const records = Array.from({ length: MAX_BATCH_RECORDS }, (_, i) => anEvent(i + 1));
    const { z } = await encodeBatch(aBatch({ records, last: MAX_BATCH_RECORDS }));
    expect(z.length / MAX_BATCH_RECORDS).toBeLessThan(40);
  });

  test('a batch without records is valid: a probe', async () => {
    const probe = aBatch({ first: 3, last: 2, records: [], objects: [] });
    expect(await decodeBatch(await encodeBatch(probe))).toMatchObject({ ok: true });
  });

  test('a batch with an invalid record is accepted: records are validated one by one', async () => {
    const decoded = await decodeBatch(
      await packedJson({ ...aBatch(), records: [anEvent(1), { type: 'new' }] }),
    );
    if (!decoded.ok) throw new Error(decoded.error);
    expect(decoded.value.records.map((record) => parseRecord(record).ok)).toEqual([true, false]);
  });

  test('invalid identities are left out', async () => {
    const objects = [
      anObject('c1'),
      5,
      null,
      { ...anObject('c2'), attempt: -1 },
      { ...anObject('c3'), more: 1 },
    ];
    const decoded = await decodeBatch(await packedJson({ ...aBatch(), objects }));
    if (!decoded.ok) throw new Error(decoded.error);
    expect(readObjects(decoded.value)).toEqual([anObject('c1')]);
  });

  test.each<[string, Partial<Batch>]>([
    ['begins after the first record', { head: aHead({ from: 2 }) }],
    ['has a hint too few', { head: aHead({ hints: 'AA==' }) }],
    ['is in a probe', { head: aHead({ hints: '' }), first: 3, last: 2, records: [], objects: [] }],
  ])('a head is refused that %s', async (_, more) => {
    expect(await refusal(await encodeBatch(aBatch(more)))).toMatchObject({
      reason: 'not_a_batch',
      error: 'head: is not about the records',
    });
    expect(await decodeBatch(await encodeBatch(aBatch({ head: aHead() })))).toMatchObject({ ok: true });
  });

  test('agents write an envelope version that controllers accept', () => {
    expect(ACCEPTED_VERSIONS).toContain(aBatch().v);
  });
});

describe('decodeBatch refuses, without throwing,', () => {
  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a number', 5],
    ['a text', 'z'],
    ['an object without data', {}],
    ['data that is not text', { z: 5 }],
    ['data that is not base64', { z: '\u{1f600}***' }],
    ['data that is not compressed', { z: Buffer.from('hello').toString('base64') }],
    ['an array', []],
  ])('%s', async (_, data) => {
    expect(await refusal(data)).toMatchObject({ reason: 'not_a_batch', claimedNode: '' });
  });

  test.each(['null', '5', '"x"', '[]', '{}', '{', '', '\u0000'])('the JSON %j', async (json) => {
    expect(await refusal(await packed(json))).toMatchObject({ reason: 'not_a_batch' });
  });

  test('text that is not UTF-8', async () => {
    expect(await refusal(await packed(Buffer.from([0x22, 0xff, 0x22])))).toMatchObject({
      reason: 'not_a_batch',
    });
  });

  test('a decompression bomb, without decompressing it', async () => {
    const bomb = await packed(Buffer.alloc(512 * 1024 * 1024));
    expect(bomb.z.length).toBeLessThan(100_000);
    const before = process.memoryUsage().arrayBuffers;
    expect(await refusal(bomb)).toMatchObject({ reason: 'not_a_batch' });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * MAX_DECODED_BYTES);
  });

  test('JSON nested deeper than the stack', async () => {
    const deep = `{"v":1,"node":${'['.repeat(2_000_000)}${']'.repeat(2_000_000)}}`;
    expect(await refusal(await packed(deep))).toMatchObject({ reason: 'not_a_batch' });
  });

  test('a truncated batch', async () => {
    const { z } = await encodeBatch(aBatch());
    expect(await refusal({ z: z.slice(0, z.length / 2) })).toMatchObject({ reason: 'not_a_batch' });
  });

  test('random bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 100 }), async (bytes) => {
        await refusal({ z: Buffer.from(bytes).toString('base64') });
      }),
      { numRuns: 200 },
    );
  });

  test('a newer version as `version`, and an invalid version as `not_a_batch`', async () => {
    expect(await refusal(await packedJson({ ...aBatch(), v: 2, whatever: true }))).toMatchObject({
      reason: 'version',
      claimedNode: 'node-1.example',
    });
    for (const v of [0, -1, 1.5, '2', null]) {
      expect(await refusal(await packedJson({ ...aBatch(), v }))).toMatchObject({ reason: 'not_a_batch' });
    }
  });

  const wrong: Readonly<Record<string, object>> = {
    'an unknown field': { more: 1 },
    'a cluster that would break a key': { cluster: '{a}:b' },
    'a node with capitals': { node: 'Node' },
    'an epoch that is not a UUID': { epoch: 'x' },
    'an incarnation of 0': { incarnation: 0 },
    'an ack generation of 0': { ackGeneration: 0 },
    'a seq beyond its column': { first: 2_147_483_647, last: 2_147_483_648 },
    'a NUL in a version': { context: { ...aBatch().context, agent: 'a\0' } },
    'a last that does not match the number of records': { last: 3 },
    'a lost range that ends before it begins': { lost: [{ from: 9, to: 8, cause: 'x' }] },
    'a lost range that overlaps the records': { lost: [{ from: 2, to: 8, cause: 'x' }] },
    'itself as the previous epoch': { prev: EPOCH },
    'a time that is not a number': { wall0: '5' },
    'a negative time': { mono0: -1 },
    'more records than a batch holds': { records: Array(501).fill(1), last: 501 },
    'more identities than a batch holds': { objects: Array(2001).fill(1) },
    'more lost ranges than a batch holds': { lost: Array(1001).fill({ from: 5, to: 5, cause: 'x' }) },
    'records that are not a list': { records: { length: 2 } },
  };

  test.each(Object.entries(wrong))('%s', async (_, more) => {
    const refused = await refusal(await packedJson({ ...aBatch(), ...more }));
    expect(refused.reason).toBe('not_a_batch');
    expect(refused.error).not.toBe('');
  });

  test('the claimed node of a refused input is cut to 253 characters without NUL', async () => {
    const { claimedNode } = await refusal(await packedJson({ v: 1, node: `a\0${'x'.repeat(1000)}` }));
    expect(claimedNode).toHaveLength(253);
    expect(claimedNode).not.toContain('\0');
  });
});

describe('prototype pollution', () => {
  test.each(['__proto__', 'constructor', 'prototype', 'toString'])(
    'an input field named %s pollutes no object',
    async (key) => {
      const json = JSON.stringify(aBatch()).replace('{', `{"${key}":{"polluted":true},`);
      await decodeBatch(await packed(json));
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
      const record = JSON.parse(JSON.stringify(anEvent(1)).replace('{', `{"${key}":{"polluted":true},`));
      const parsed = parseRecord(record);
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
      // Refused or ignored, it never reaches the parsed value.
      if (parsed.ok) expect(Reflect.get(parsed.value, 'polluted')).toBeUndefined();
    },
  );
});

describe('the id of a batch', () => {
  test('is the same for every re-send, in any ack generation', () => {
    expect(batchId(aBatch({ ackGeneration: 1 }))).toBe(batchId(aBatch({ ackGeneration: 9 })));
  });

  test('differs between the probes of two ack generations', () => {
    const probe = { first: 3, last: 2 };
    expect(batchId(aBatch({ ...probe, ackGeneration: 1 }))).not.toBe(
      batchId(aBatch({ ...probe, ackGeneration: 2 })),
    );
  });

  test('differs by node, epoch and seqs, and is not a number, as the ids that BullMQ generates', () => {
    const ids = [{}, { node: 'node-2' }, { epoch: OTHER }, { first: 2 }, { last: 3 }].map((more) =>
      batchId(aBatch(more)),
    );
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}\.[0-9a-f-]{36}\.\d+\.\d+$/);
  });
});
