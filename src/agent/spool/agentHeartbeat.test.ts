import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../../platform/log.ts';
import type { EvidenceRecord, GapScope } from '../../protocol/record.ts';
import { millis, offset, shift } from '../../protocol/units.ts';
import { LOCAL_FILES, type SpoolFiles } from './files.ts';
import { openSpool } from './openSpool.ts';
import type { Spool } from './spool.ts';

const CONTEXT = {
  runtime: { name: 'containerd', version: '2.1.9' },
  kubelet: '',
  agent: '0.1.0',
  settings: { relistPeriod: 5e6, overdueAfter: 2e6, missedAfter: 30e6, lateAfter: 1e6 },
};

let dir: string;
const spools: Spool[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-heartbeat-'));
});
afterEach(async () => {
  for (const spool of spools.splice(0)) await spool.close();
  rmSync(dir, { recursive: true, force: true });
});

/** An agent that ends without stopping in order leaves the same behind. */
async function abandon(spool: Spool): Promise<void> {
  spools.splice(spools.indexOf(spool), 1);
  await spool.close();
}

async function open(bootId = 'this-boot', files = LOCAL_FILES): Promise<Spool> {
  const spool = await openSpool(
    {
      dir,
      cluster: 'prod',
      node: 'node-1',
      maxBytes: 64 * 1024 * 1024,
      fsyncInterval: millis(1_000),
      retention: millis(60_000),
      sweepInterval: millis(30_000),
      log: createLogger('fatal', 'test'),
      bootId,
      files,
    },
    AbortSignal.timeout(240_000),
  );
  spools.push(spool);
  spool.setContext(CONTEXT);
  return spool;
}

const event = (t: number): EvidenceRecord => ({
  type: 'container_event',
  t: offset(t),
  containerId: 'c1',
  eventType: 1,
  createdNs: '1',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
});

const gap = (t: number, scope: GapScope = 'stream'): EvidenceRecord => ({
  type: 'gap',
  t: offset(t),
  gapId: '00000000-0000-4000-8000-000000000001',
  scope,
  cause: 'unproven',
  from: offset(0),
  to: null,
});

test('the first agent of a node has nobody before it', async () => {
  expect((await open()).lastObserved).toBeNull();
});

test('an agent that died observed its node until its last heartbeat', async () => {
  const first = await open();
  first.append(gap(1), null);
  const until = shift(first.start, 5_000);
  await first.startHeartbeat(() => until);
  await abandon(first);
  const wall = first.current.meta.startedWall + 5_000;
  expect((await open()).lastObserved).toEqual({ mono: until, wall, cause: 'died' });
});

test('an agent that died after its last heartbeat observed its node until the last event on its disk', async () => {
  const first = await open();
  await first.startHeartbeat(() => first.start);
  first.append(event(7_000), null);
  first.append(gap(9_000), null);
  await abandon(first);
  const { startedWall } = first.current.meta;
  const last = { mono: shift(first.start, 7_000), wall: startedWall + 7_000, cause: 'died' };
  expect((await open()).lastObserved).toEqual(last);
});

test('an agent that died before its first heartbeat observed nothing but the events on its disk', async () => {
  const first = await open();
  await first.startHeartbeat(() => shift(first.start, 1_000));
  await abandon(first);
  const second = await open();
  second.append(gap(1), null);
  await abandon(second);
  const third = await open();
  expect(third.lastObserved?.mono).toBe(second.start);
  third.append(event(3_000), null);
  await abandon(third);
  expect((await open()).lastObserved?.mono).toBe(shift(third.start, 3_000));
});

test('an agent that ended without a record leaves what is known of the one before it', async () => {
  const first = await open();
  first.append(gap(1), null);
  await first.startHeartbeat(() => shift(first.start, 1_000));
  await abandon(first);
  await abandon(await open());
  expect((await open()).lastObserved?.mono).toBe(shift(first.start, 1_000));
});

test('an agent that stopped has recorded its own end', async () => {
  const first = await open();
  first.append(gap(1), null);
  await first.startHeartbeat(() => first.start);
  await first.stopHeartbeat(shift(first.start, 1_000));
  await abandon(first);
  expect((await open()).lastObserved).toBeNull();
});

test('an agent that recorded its end and was killed before its last heartbeat has stopped', async () => {
  const first = await open();
  await first.startHeartbeat(() => first.start);
  first.append(gap(5_000, 'agent'), null);
  await abandon(first);
  expect((await open()).lastObserved).toBeNull();
});

test('the end of an agent outlasts a heartbeat that a slow disk still writes', async () => {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow: SpoolFiles = {
    ...LOCAL_FILES,
    async rename(from, to) {
      if (to.endsWith('heartbeat.json')) await released;
      await LOCAL_FILES.rename(from, to);
    },
  };
  const first = await open('this-boot', slow);
  first.append(gap(1), null);
  const started = first.startHeartbeat(() => first.start);
  const stopped = first.stopHeartbeat(shift(first.start, 1_000));
  for (let i = 0; i < 50; i += 1) await LOCAL_FILES.stat(dir);
  release();
  await Promise.all([started, stopped]);
  expect(first.error).toBeNull();
  await abandon(first);
  expect((await open()).lastObserved).toBeNull();
});

test('on another boot only the wall clock says until when the node was observed', async () => {
  const first = await open();
  first.append(gap(1), null);
  await first.startHeartbeat(() => shift(first.start, 5_000));
  await abandon(first);
  const wall = first.current.meta.startedWall + 5_000;
  expect((await open('next-boot')).lastObserved).toEqual({ mono: null, wall, cause: 'rebooted' });
});
