import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CONTEXT, SpoolBed, spoolRecord } from '../../../test/support/spoolBed.ts';
import { MAX_INT4, MAX_OFFSET } from '../../protocol/record.ts';
import { between, type Micros, millis, shift } from '../../protocol/units.ts';
import { HEARTBEAT_MS } from './agentHeartbeat.ts';
import { isEpochFull, MAX_EPOCH_AGE, MAX_EPOCH_CONTEXTS, MAX_EPOCH_RECORDS } from './newEpoch.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval'] }));
afterEach(() => void vi.useRealTimers());
const bed = new SpoolBed(() => ({ fsyncInterval: millis(1_000) }));

const DAY = 86_400_000_000;
const extent = { records: 1, contexts: 1, age: 0 as Micros };

test('an epoch is full at half of what its seqs, offsets or contexts can count, or before', () => {
  expect(isEpochFull(extent)).toBe(false);
  for (const full of [
    { ...extent, records: MAX_EPOCH_RECORDS },
    { ...extent, contexts: MAX_EPOCH_CONTEXTS },
    { ...extent, age: MAX_EPOCH_AGE },
  ])
    expect(isEpochFull(full)).toBe(true);
  expect(MAX_EPOCH_RECORDS).toBeLessThanOrEqual((MAX_INT4 + 1) / 2);
  expect(MAX_EPOCH_AGE).toBeLessThanOrEqual(MAX_OFFSET / 2);
});

test('in two years of uptime no record is further from the start of its epoch than an offset can say', async () => {
  const ages: number[] = [];
  let day = 0;
  while (day < 2 * 365) {
    const spool = await bed.open();
    spool.setContext(CONTEXT);
    const began = day;
    const now = () => shift(spool.start, ((day - began) * DAY) as Micros);
    await spool.startHeartbeat(now);
    for (; !spool.full.aborted && day < 2 * 365; day += 1) {
      spool.append(spoolRecord(day + 1), null);
      await vi.advanceTimersByTimeAsync(HEARTBEAT_MS);
    }
    ages.push(between(spool.start, now()));
    await bed.close(spool);
  }
  expect(ages.length).toBeGreaterThan(2);
  expect(Math.max(...ages)).toBeLessThan(MAX_OFFSET / 2);
});
