/*
 * The spool's promise when power is cut at any step: a later incarnation reads every synced record, or declares it lost, and reads nothing that was
 * not written.
 */
import { basename, dirname } from 'node:path';
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { randomFor } from '../../../devtools/simulator/random.ts';
import { ModelDisk } from '../../../test/support/modelDisk.ts';
import { runsOf } from '../../../test/support/runs.ts';
import { CONTEXT, readAll, SpoolBed, spoolRecord } from '../../../test/support/spoolBed.ts';
import { millis, seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import { parseSegment } from './segmentFormat.ts';
import type { Spool } from './spool.ts';

const RUNS = runsOf(150);

/** Small segments: a thousand agents write for seconds, not for minutes. */
const { SEGMENT_BYTES } = vi.hoisted(() => ({ SEGMENT_BYTES: 16_384 }));
vi.mock('./segment.ts', async (original) => ({ ...(await original<object>()), SEGMENT_BYTES }));
const bed = new SpoolBed();

/**
 * One incarnation: it writes records of some size, write after write, until power is cut at some step. Meanwhile the store
 * acknowledges a share of every epoch, and a small spool fills up again and again.
 */
interface PoweredRun {
  readonly writes: readonly { readonly records: number; readonly padding: number }[];
  readonly steps: number;
  readonly everyWrite: boolean;
  readonly small: boolean;
  /** The share of each epoch that is acknowledged after each write, in turn. */
  readonly acknowledged: readonly number[];
}

const anyRun: fc.Arbitrary<PoweredRun> = fc.record({
  writes: fc.array(
    fc.record({
      records: fc.integer({ min: 1, max: 5 }),
      padding: fc.constantFrom(0, 1_000, 5_000, 14_000),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  steps: fc.integer({ min: 1, max: 160 }),
  everyWrite: fc.boolean(),
  small: fc.boolean(),
  acknowledged: fc.array(fc.constantFrom(0, 0, 0.5, 1), { minLength: 1, maxLength: 4 }),
});

/** It only computes, and gets a small share of a busy machine. */
const TIMEOUT_MS = 1_200_000;

test('a synced record is read again or declared lost after one to three power cuts at any step', {
  timeout: TIMEOUT_MS,
}, async () => {
  let cuts = 0;
  let synced = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyRun, { minLength: 1, maxLength: 3 }), fc.nat(), async (runs, seed) => {
      const random = randomFor(seed, 'power');
      const disk = new ModelDisk();
      await disk.makeFolder(bed.dir);
      disk.comeBack(() => 0.999);
      const known: KnownSeqs = { promised: new Map(), written: new Map(), acknowledged: new Map() };
      const { promised, written } = known;
      disk.onSynced = (path, text) => {
        const epoch = epochOf(path);
        const last = path.endsWith('.seg') ? parseSegment(basename(path), Buffer.from(text)).last : 0;
        if (last > 0) promised.set(epoch, Math.max(last, promised.get(epoch) ?? 0));
      };
      for (const each of runs) {
        await runUntilCut(disk, each, known);
        cuts += 1;
        disk.comeBack(() => random.next());
      }
      const spool = await open(disk, { everyWrite: true, small: false });
      try {
        for (const [name, last] of promised) {
          synced += last;
          const epoch = spool.epochs.find(({ meta }) => meta.epoch === name);
          const acknowledged = known.acknowledged.get(name) ?? 0;
          expect((await missing(epoch, last)).filter((each) => each > acknowledged)).toEqual([]);
          // Acknowledged records may be deleted, but the epoch is remembered: the store may be restored.
          expect(epoch?.lastSeq ?? 0).toBeGreaterThanOrEqual(Math.min(last, acknowledged));
          expect(epoch?.lastSeq).toBeLessThanOrEqual(written.get(name) ?? 0);
        }
      } finally {
        await bed.close(spool);
      }
    }),
    { numRuns: RUNS, seed: 20 },
  );
  expect(cuts).toBeGreaterThan(RUNS);
  expect(synced).toBeGreaterThan(4 * RUNS);
});

/** By epoch: the highest seq that was synced, that was appended, and that the store acknowledged. */
interface KnownSeqs {
  readonly promised: Map<string, number>;
  readonly written: Map<string, number>;
  readonly acknowledged: Map<string, number>;
}

async function runUntilCut(disk: ModelDisk, run: PoweredRun, known: KnownSeqs): Promise<void> {
  const { writes, steps, everyWrite } = run;
  const { promised, written } = known;
  disk.cutAfter(steps);
  const spool = await open(disk, run).catch((error: unknown) => {
    // Power was cut while it was opened.
    if (disk.isOff) return null;
    throw error;
  });
  if (spool === null) return;
  spool.setContext(CONTEXT);
  const { epoch } = spool.current.meta;
  for (const [turn, { records, padding }] of writes.entries()) {
    for (let i = 0; i < records; i += 1) {
      const next = (written.get(epoch) ?? 0) + 1;
      written.set(epoch, next);
      spool.append(spoolRecord(next, padding), null);
    }
    await spool.flush();
    if (everyWrite && !disk.isOff) expect(promised.get(epoch)).toBe(written.get(epoch));
    acknowledge(spool, run.acknowledged[turn % run.acknowledged.length] ?? 0, known);
  }
  if (!disk.isOff) disk.cutAfter(1);
  await bed.close(spool);
}

/** Acknowledges this share of the unacknowledged records of every epoch. */
function acknowledge(spool: Spool, share: number, { acknowledged }: KnownSeqs): void {
  for (const epoch of spool.epochs) {
    const acked = epoch.ackedSeq + Math.floor(share * (epoch.lastSeq - epoch.ackedSeq));
    epoch.acknowledge(seq(acked));
    const { epoch: name } = epoch.meta;
    acknowledged.set(name, Math.max(acked, acknowledged.get(name) ?? 0));
  }
}

const open = (
  disk: ModelDisk,
  { everyWrite, small }: Pick<PoweredRun, 'everyWrite' | 'small'>,
): Promise<Spool> =>
  bed.open({
    maxBytes: (small ? 4 : 64) * SEGMENT_BYTES,
    fsyncInterval: millis(everyWrite ? 0 : 1),
    files: disk,
  });

/** The seqs up to this one that are neither readable nor declared lost. Fails if a record is not as it was written. */
async function missing(epoch: Epoch | undefined, last: number): Promise<number[]> {
  const all = Array.from({ length: last }, (_, i) => i + 1);
  if (epoch === undefined) return all;
  const read = new Set(await readAll(epoch));
  return all.filter((each) => !read.has(each) && !epoch.isDeclaredLost(each, each));
}

const epochOf = (path: string): string => {
  const name = basename(dirname(path));
  return name.slice(name.indexOf('-') + 1);
};
