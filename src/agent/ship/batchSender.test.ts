/*
 * When batches are sent: while Redis is connected to again, while records cannot be read, and while an acknowledgement is awaited.
 */
import { afterEach, expect, test, vi } from 'vitest';
import { SpoolBed, write } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { decodeBatch } from '../../protocol/batch.ts';
import { millis } from '../../protocol/units.ts';
import { LOCAL_FILES, type SpoolFiles } from '../spool/files.ts';
import { BatchSender } from './batchSender.ts';
import { Deliveries } from './deliveries.ts';
import type { SealedBatch } from './sealedBatch.ts';

const bed = new SpoolBed();
const HOUR = millis(3_600_000);
const INTERVALS = { intervalAckGeneration: HOUR, intervalRetiredEpochs: HOUR, intervalResend: HOUR };

afterEach(() => {
  vi.useRealTimers();
});

const noSign = () => Promise.reject(new Error('nobody waited for so long'));

test('a probe that was on its way before a new connection answers nothing of the next generation', async () => {
  const spool = await bed.open();
  await write(spool, 1, 3);
  const deliveries = new Deliveries(spool, INTERVALS);
  deliveries.followSpool();
  const generations: unknown[] = [];
  const inbox = {
    showLife: noSign,
    async add({ data }: SealedBatch) {
      const batch = await decodeBatch(data);
      generations.push(batch.ok ? batch.value.ackGeneration : batch.error);
      if (generations.length === 1) deliveries.startGeneration();
    },
  };
  const ackReader = { flowSettings: null, expectReply: () => undefined };
  const sender = new BatchSender({ spool, deliveries, inbox, ackReader, log: createLogger('fatal', 'test') });
  for (let pass = 0; pass < 3; pass += 1) await sender.sendNew(true);
  expect(generations).toEqual([1, 2]);
});

test('records that are written while those before them cannot be read are sent, not declared lost with them', async () => {
  let onRead: (() => Promise<void>) | null = null;
  const files: SpoolFiles = {
    ...LOCAL_FILES,
    async open(path, flags) {
      if (flags !== 'r' || onRead === null) return LOCAL_FILES.open(path, flags);
      await onRead();
      throw Object.assign(new Error('away'), { code: 'ENOENT' });
    },
  };
  const spool = await bed.open({ files });
  await write(spool, 1, 3);
  const deliveries = new Deliveries(spool, INTERVALS);
  deliveries.followSpool();
  for (const delivery of deliveries.all) deliveries.apply(delivery, { ackGeneration: 1, ackedSeq: 0 }, true);
  const sent: { first: number; last: number }[] = [];
  const inbox = {
    showLife: noSign,
    async add({ data }: SealedBatch) {
      const batch = await decodeBatch(data);
      if (!batch.ok) throw new Error(batch.error);
      const { first, last, records } = batch.value;
      if (records.length > 0) sent.push({ first, last });
    },
  };
  const flowSettings = { queues: 1, window: 1_000_000, accepts: [] };
  const ackReader = { flowSettings, expectReply: () => undefined };
  const sender = new BatchSender({ spool, deliveries, inbox, ackReader, log: createLogger('fatal', 'test') });
  onRead = async () => {
    const next = spool.current.lastSeq + 1;
    await write(spool, next, next);
  };
  while (spool.current.lost.length === 0) await sender.sendNew(true);
  onRead = null;
  const last = spool.current.lastSeq;
  for (let pass = 0; pass < 3; pass += 1) await sender.sendNew(true);
  expect(spool.current.lost).toEqual([{ from: 1, to: last - 1, cause: 'spool_unreadable' }]);
  expect(sent).toEqual([{ first: last, last }]);
});

test('a batch waits longer for more records while the one before it is not acknowledged', async () => {
  vi.useFakeTimers({ toFake: ['hrtime'] });
  const spool = await bed.open();
  const deliveries = new Deliveries(spool, INTERVALS);
  deliveries.followSpool();
  const acknowledge = (ackedSeq: number) => {
    for (const delivery of deliveries.all) deliveries.apply(delivery, { ackGeneration: 1, ackedSeq }, true);
  };
  acknowledge(0);
  const sent: number[] = [];
  const inbox = {
    showLife: noSign,
    async add({ data }: SealedBatch) {
      const batch = await decodeBatch(data);
      sent.push(batch.ok ? batch.value.last : Number.NaN);
    },
  };
  const flowSettings = { queues: 1, window: 1_000_000, accepts: [] };
  const ackReader = { flowSettings, expectReply: () => undefined };
  const sender = new BatchSender({ spool, deliveries, inbox, ackReader, log: createLogger('fatal', 'test') });
  const writtenAndSentAfter = async (ms: number) => {
    const next = spool.current.lastSeq + 1;
    await write(spool, next, next);
    vi.advanceTimersByTime(ms);
    await sender.sendNew(false);
  };
  await writtenAndSentAfter(250);
  expect(sent).toEqual([1]);
  await writtenAndSentAfter(250);
  await writtenAndSentAfter(240);
  expect(sent).toEqual([1]);
  await writtenAndSentAfter(10);
  expect(sent).toEqual([1, 4]);
  acknowledge(4);
  await writtenAndSentAfter(250);
  expect(sent).toEqual([1, 4, 5]);
});

test('an agent that has nothing to send shows once a minute that it runs, and what is decided once all of it is sent', async () => {
  vi.useFakeTimers({ toFake: ['hrtime'] });
  const spool = await bed.open();
  const deliveries = new Deliveries(spool, INTERVALS);
  deliveries.followSpool();
  for (const delivery of deliveries.all) deliveries.apply(delivery, { ackGeneration: 1, ackedSeq: 0 }, true);
  const sent: unknown[] = [];
  const send = async ({ data }: SealedBatch) => {
    const batch = await decodeBatch(data);
    if (!batch.ok) throw new Error(batch.error);
    const { first, last, known } = batch.value;
    sent.push([first, last, known]);
  };
  const inbox = { add: send, showLife: send };
  const flowSettings = { queues: 1, window: 1_000_000, accepts: [] };
  const ackReader = { flowSettings, expectReply: () => undefined };
  let drawn = 1;
  const log = createLogger('fatal', 'test');
  const sender = new BatchSender({ spool, deliveries, inbox, ackReader, log, random: () => drawn });
  await write(spool, 1, 3);
  spool.setKnown({ decided: 5, scraped: null });
  await sender.sendNew(true);
  const pass = async (ms: number) => {
    vi.advanceTimersByTime(ms);
    await sender.sendNew(false);
  };
  await pass(59_999);
  expect(sent).toEqual([[1, 3, undefined]]);
  drawn = 0.2;
  await pass(1);
  await pass(47_000);
  expect(sent.slice(1)).toEqual([[4, 3, { decided: 5, scraped: null }]]);
  spool.setKnown({ decided: 7, scraped: 6 });
  await pass(1_000);
  expect(sent.slice(2)).toEqual([[4, 3, { decided: 7, scraped: 6 }]]);
  await write(spool, 4, 4);
  spool.setKnown({ decided: 9, scraped: 8 });
  await sender.sendNew(true);
  expect(sent.slice(3)).toEqual([[4, 4, undefined]]);
});

test('a batch of records in the second half of the interval asks what is stored, unless another one still waits for its reply', async () => {
  vi.useFakeTimers({ toFake: ['hrtime'] });
  const spool = await bed.open();
  const deliveries = new Deliveries(spool, INTERVALS);
  deliveries.followSpool();
  const reply = (ackGeneration: number, ackedSeq: number) => {
    for (const delivery of deliveries.all) deliveries.apply(delivery, { ackGeneration, ackedSeq }, true);
  };
  reply(1, 0);
  const sent: unknown[] = [];
  const inbox = {
    showLife: () => Promise.resolve(),
    async add({ data }: SealedBatch) {
      const batch = await decodeBatch(data);
      sent.push(batch.ok ? [batch.value.ackGeneration, batch.value.records.length] : batch.error);
    },
  };
  const flowSettings = { queues: 1, window: 1_000_000, accepts: [] };
  const ackReader = { flowSettings, expectReply: () => undefined };
  const sender = new BatchSender({ spool, deliveries, inbox, ackReader, log: createLogger('fatal', 'test') });
  const writtenAfter = async (minutes: number) => {
    vi.advanceTimersByTime(minutes * 60_000);
    deliveries.startGenerationIfDue();
    const next = spool.current.lastSeq + 1;
    await write(spool, next, next);
    await sender.sendNew(true);
  };
  await writtenAfter(29);
  await writtenAfter(2);
  expect(sent.splice(0)).toEqual([
    [1, 1],
    [1, 1],
  ]);
  reply(1, 2);
  await writtenAfter(1);
  expect(sent.splice(0)).toEqual([[2, 1]]);
  // Nothing else is sent before the reply.
  await writtenAfter(0);
  expect(sent).toEqual([]);
  reply(2, 3);
  await writtenAfter(29);
  expect(sent.splice(0)).toEqual([[2, 2]]);
  // Nothing was sent in the second half of the interval.
  reply(2, 5);
  await writtenAfter(32);
  expect(sent.splice(0)).toEqual([[3, 0]]);
});
