/*
 * Sending while Redis is connected to again.
 */
import { expect, test } from 'vitest';
import { SpoolBed, write } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { decodeBatch } from '../../protocol/batch.ts';
import { millis } from '../../protocol/units.ts';
import { BatchSender } from './batchSender.ts';
import { Deliveries } from './deliveries.ts';
import type { SealedBatch } from './sealedBatch.ts';

const bed = new SpoolBed();
const HOUR = millis(3_600_000);

test('a probe that was on its way before a new connection answers nothing of the next generation', async () => {
  const spool = await bed.open();
  await write(spool, 1, 3);
  const deliveries = new Deliveries(spool, {
    intervalAckGeneration: HOUR,
    intervalRetiredEpochs: HOUR,
    intervalResend: HOUR,
  });
  deliveries.followSpool();
  const generations: unknown[] = [];
  const queue = {
    async add({ data }: SealedBatch) {
      const batch = await decodeBatch(data);
      generations.push(batch.ok ? batch.value.ackGeneration : batch.error);
      if (generations.length === 1) deliveries.startGeneration();
    },
  };
  const ackReader = { flowSettings: null, expectReply: () => undefined };
  const sender = new BatchSender({ spool, deliveries, queue, ackReader, log: createLogger('fatal', 'test') });
  for (let pass = 0; pass < 3; pass += 1) await sender.sendNew(true);
  expect(generations).toEqual([1, 2]);
});
