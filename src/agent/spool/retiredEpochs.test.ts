import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../test/support/faultyDisk.ts';
import { CONTEXT, SpoolBed, write } from '../../../test/support/spoolBed.ts';
import { until } from '../../../test/support/waitFor.ts';
import { millis, seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import { MAX_RETIRED_EPOCHS, RETIRED_RETENTION_MS } from './retiredEpochs.ts';
import type { Spool } from './spool.ts';

const bed = new SpoolBed(() => ({ sweepInterval: millis(100) }));

/** Runs an incarnation with this many records and returns the name of its epoch. */
async function incarnation(records: number): Promise<string> {
  const spool = await bed.open();
  if (records > 0) await write(spool, 1, records);
  await bed.close(spool);
  return spool.current.meta.epoch;
}

const epochIn = (spool: Spool, name: string): Epoch | undefined =>
  spool.epochs.find(({ meta }) => meta.epoch === name);

/** Acknowledges all records of the earlier epochs and waits until they are retired. */
async function acknowledgeAll(): Promise<void> {
  const spool = await bed.open();
  for (const epoch of spool.epochs) if (epoch !== spool.current) epoch.acknowledge(epoch.lastSeq);
  await until(() => spool.epochs.every((epoch) => epoch === spool.current || epoch.retirement !== null));
  await until(() => spool.epochs.length <= MAX_RETIRED_EPOCHS + 1);
  await bed.close(spool);
}

test('an epoch whose records are all acknowledged and deleted is remembered, by later incarnations too', async () => {
  const name = await incarnation(7);
  await acknowledgeAll();
  const spool = await bed.open();
  const epoch = epochIn(spool, name);
  expect(epoch).toMatchObject({ lastSeq: 7, ackedSeq: 7, oldestSeq: 8, isAcknowledged: true, bytes: 0 });
  expect(epoch?.retirement?.context).toMatchObject(CONTEXT);
  expect(epoch?.meta.epoch).toBe(name);
  expect(await epoch?.read(1, 500, 1_000)).toEqual([]);
  expect(spool.current.meta.incarnation).toBeGreaterThan(epoch?.meta.incarnation ?? Number.POSITIVE_INFINITY);
});

test('an acknowledged epoch is retired while an unacknowledged one is not', async () => {
  const [kept, gone] = [await incarnation(7), await incarnation(7)];
  const spool = await bed.open();
  const [one, other] = [epochIn(spool, kept), epochIn(spool, gone)];
  if (one === undefined || other === undefined) throw new Error('an epoch is gone');
  one.acknowledge(seq(6));
  other.acknowledge(seq(7));
  await until(() => other.retirement !== null);
  expect(one.retirement).toBeNull();
  expect(await one.read(1, 500, 100_000)).toHaveLength(7);
});

test('an epoch whose last segment cannot be read yet is not retired: it may have more records than are known', async () => {
  const name = await incarnation(7);
  const disk = new FaultyDisk();
  let reads = 0;
  disk.faultOf = (call) => {
    if (call.name !== 'read' || !call.path.endsWith('.seg')) return null;
    reads += 1;
    return reads < 10 ? 'EIO' : null;
  };
  const spool = await bed.open({ files: disk });
  const epoch = epochIn(spool, name);
  epoch?.acknowledge(epoch.lastSeq);
  expect(epoch).toMatchObject({ lastSeq: 1, isAcknowledged: true });
  await until(() => reads >= 10);
  await until(() => epoch?.lastSeq === 7);
  expect(epoch?.retirement).toBeNull();
  expect(await epoch?.read(1, 500, 100_000)).toHaveLength(7);
});

test('the end of a last segment is looked for again at each sweep, not only once its retention is over', async () => {
  const name = await incarnation(7);
  const disk = new FaultyDisk();
  disk.faultOf = (call) => (call.name === 'read' && call.path.endsWith('.seg') ? 'EIO' : null);
  const spool = await bed.open({ files: disk, retention: millis(86_400_000) });
  const epoch = epochIn(spool, name);
  epoch?.acknowledge(epoch.lastSeq);
  expect(epoch?.lastSeq).toBe(1);
  disk.mend();
  await until(() => epoch?.lastSeq === 7);
});

test('an epoch without records is forgotten', async () => {
  const name = await incarnation(0);
  const spool = await bed.open();
  await until(() => epochIn(spool, name) === undefined);
  await bed.close(spool);
  expect(existsSync(join(bed.dir, 'retired.json'))).toBe(false);
});

test('unreadable records of an epoch still count as dropped after the epoch is forgotten', async () => {
  const name = await incarnation(0);
  const spool = await bed.open();
  epochIn(spool, name)?.declareUnreadable(1, 3);
  expect(spool.dropped).toBe(3);
  await until(() => epochIn(spool, name) === undefined);
  expect(spool.dropped).toBe(3);
});

test('only the latest 32 retired epochs are remembered', async () => {
  const names: string[] = [];
  for (let i = 0; i < MAX_RETIRED_EPOCHS + 2; i += 1) names.push(await incarnation(1));
  await acknowledgeAll();
  const spool = await bed.open();
  expect(names.filter((name) => epochIn(spool, name) !== undefined)).toEqual(names.slice(2));
});

test('an epoch that retired over 30 days ago is forgotten', async () => {
  const name = await incarnation(1);
  await acknowledgeAll();
  const file = join(bed.dir, 'retired.json');
  const lines = JSON.parse(readFileSync(file, 'utf8')) as { at: number }[];
  writeFileSync(
    file,
    JSON.stringify(lines.map((line) => ({ ...line, at: line.at - RETIRED_RETENTION_MS - 1_000 }))),
  );
  const spool = await bed.open();
  await until(() => epochIn(spool, name) === undefined);
});

test('an unreadable retired.json counts as missing', async () => {
  await incarnation(1);
  await acknowledgeAll();
  writeFileSync(join(bed.dir, 'retired.json'), '[{"meta":');
  const spool = await bed.open();
  expect(spool.epochs.every(({ retirement }) => retirement === null)).toBe(true);
});
