/*
 * Replies to an epoch of which the store has more than the spool knows.
 */
import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../test/support/faultyDisk.ts';
import { earlierOf, onlySegment, SpoolBed, write } from '../../../test/support/spoolBed.ts';
import { millis } from '../../protocol/units.ts';
import { Deliveries } from './deliveries.ts';

const bed = new SpoolBed();
const HOUR = millis(3_600_000);
const INTERVALS = { intervalAckGeneration: HOUR, intervalRetiredEpochs: HOUR, intervalResend: HOUR };

test('a store that has more is not asked again and again, but once more when the spool knows more', async () => {
  const disk = new FaultyDisk();
  const first = await bed.open({ files: disk });
  await write(first, 1, 10);
  await bed.close(first);
  disk.breakSector(onlySegment(first.current), 0);
  const next = await bed.open({ files: disk });
  const epoch = earlierOf(next);
  const deliveries = new Deliveries(next, INTERVALS);
  deliveries.followSpool();
  const [delivery] = deliveries.all;
  if (delivery?.epoch !== epoch) throw new Error('the epoch is not delivered');
  const reply = { ackGeneration: 1, ackedSeq: 10 };
  deliveries.apply(delivery, reply, true);
  expect(delivery.isBusy).toBe(false);
  disk.mend();
  await epoch.findEnd();
  expect(delivery.awaitsReply).toBe(true);
  deliveries.apply(delivery, reply, true);
  expect(delivery.isBusy).toBe(false);
  expect(epoch).toMatchObject({ lastSeq: 10, ackedSeq: 10 });
});
