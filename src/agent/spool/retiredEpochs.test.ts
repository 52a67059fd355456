import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../platform/log.ts';
import type { EvidenceRecord } from '../../protocol/record.ts';
import { millis, offset, seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import { openSpool } from './openSpool.ts';
import { MAX_RETIRED_EPOCHS, RETIRED_RETENTION_MS } from './retiredEpochs.ts';
import type { Spool } from './spool.ts';

const CONTEXT = { runtime: { name: 'containerd', version: '2.1.9' }, kubelet: '', agent: '0.1.0' };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-retired-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const open = (): Promise<Spool> =>
  openSpool(
    {
      dir,
      cluster: 'prod',
      node: 'node-1',
      maxBytes: 64 * 1024 ** 2,
      fsyncInterval: millis(0),
      retention: millis(0),
      sweepInterval: millis(100),
      log: createLogger('fatal', 'test'),
    },
    AbortSignal.timeout(20_000),
  );

const record = (n: number): EvidenceRecord => ({
  type: 'container_event',
  t: offset(n),
  containerId: `c${n}`,
  eventType: 1,
  createdNs: '1',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
});

/** Runs an incarnation with so many records and returns the name of its epoch. */
async function incarnation(records: number): Promise<string> {
  const spool = await open();
  if (records > 0) spool.setContext(CONTEXT);
  for (let n = 1; n <= records; n += 1) spool.append(record(n), null);
  await spool.close();
  return spool.current.meta.epoch;
}

const epochIn = (spool: Spool, name: string): Epoch | undefined =>
  spool.epochs.find(({ meta }) => meta.epoch === name);

/** Acknowledges all records of the earlier epochs and waits until they are retired. */
async function acknowledgeAll(): Promise<void> {
  const spool = await open();
  for (const epoch of spool.epochs) if (epoch !== spool.current) epoch.acknowledge(epoch.lastSeq);
  await vi.waitFor(
    () =>
      expect(spool.epochs.every((epoch) => epoch === spool.current || epoch.retirement !== null)).toBe(true),
    10_000,
  );
  await vi.waitFor(() => expect(spool.epochs.length).toBeLessThanOrEqual(MAX_RETIRED_EPOCHS + 1), 10_000);
  await spool.close();
}

test('an epoch whose records are all acknowledged and deleted is remembered, by later incarnations too', async () => {
  const name = await incarnation(7);
  await acknowledgeAll();
  const spool = await open();
  const epoch = epochIn(spool, name);
  expect(epoch).toMatchObject({ lastSeq: 7, ackedSeq: 7, oldestSeq: 8, isAcknowledged: true, bytes: 0 });
  expect(epoch?.retirement?.context).toMatchObject(CONTEXT);
  expect(epoch?.meta.epoch).toBe(name);
  expect(await epoch?.read(1, 500, 1_000)).toEqual([]);
  expect(spool.current.meta.incarnation).toBeGreaterThan(epoch?.meta.incarnation ?? Number.POSITIVE_INFINITY);
  await spool.close();
});

test('an acknowledged epoch is retired while an unacknowledged one is not', async () => {
  const [kept, gone] = [await incarnation(7), await incarnation(7)];
  const spool = await open();
  const [one, other] = [epochIn(spool, kept), epochIn(spool, gone)];
  if (one === undefined || other === undefined) throw new Error('an epoch is gone');
  one.acknowledge(seq(6));
  other.acknowledge(seq(7));
  await vi.waitFor(() => expect(other.retirement).not.toBeNull(), 10_000);
  expect(one.retirement).toBeNull();
  expect(await one.read(1, 500, 100_000)).toHaveLength(7);
  await spool.close();
});

test('an epoch without records is forgotten', async () => {
  const name = await incarnation(0);
  const spool = await open();
  await vi.waitFor(() => expect(epochIn(spool, name)).toBeUndefined(), 10_000);
  await spool.close();
  expect(existsSync(join(dir, 'retired.json'))).toBe(false);
});

test('only the latest 32 retired epochs are remembered', async () => {
  const names: string[] = [];
  for (let i = 0; i < MAX_RETIRED_EPOCHS + 2; i += 1) names.push(await incarnation(1));
  await acknowledgeAll();
  const spool = await open();
  expect(names.filter((name) => epochIn(spool, name) !== undefined)).toEqual(names.slice(2));
  await spool.close();
});

test('an epoch that retired over 30 days ago is forgotten', async () => {
  const name = await incarnation(1);
  await acknowledgeAll();
  const file = join(dir, 'retired.json');
  const lines = JSON.parse(readFileSync(file, 'utf8')) as { at: number }[];
  writeFileSync(
    file,
    JSON.stringify(lines.map((line) => ({ ...line, at: line.at - RETIRED_RETENTION_MS - 1_000 }))),
  );
  const spool = await open();
  await vi.waitFor(() => expect(epochIn(spool, name)).toBeUndefined(), 10_000);
  await spool.close();
});

test('an unreadable retired.json counts as missing', async () => {
  await incarnation(1);
  await acknowledgeAll();
  writeFileSync(join(dir, 'retired.json'), '[{"meta":');
  const spool = await open();
  expect(spool.epochs.every(({ retirement }) => retirement === null)).toBe(true);
  await spool.close();
});
