/*
 * The promise of the spool when power is cut at any step: every record that was synced is read again by a later life, or
 * declared lost, and nothing is read that was not written.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { EvidenceRecord } from '../../evidence/record.ts';
import { millis, offset } from '../../evidence/units.ts';
import { createLogger } from '../../log.ts';
import { randomFor } from '../../simulator/random.ts';
import type { Epoch } from './epoch.ts';
import { ModelDisk } from './modelDisk.ts';
import { readSegment } from './segment.ts';
import { Spool } from './spool.ts';

const MIB = 1024 * 1024;
const CONTEXT = { runtime: { name: 'containerd', version: '2.1.9' }, kubelet: '', agent: '0.1.0' };

/** The lock is held on a real file. */
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-cut-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A life: so many records of such a size, one write after another, until power is cut at some step. */
interface Life {
  readonly writes: readonly { readonly records: number; readonly padding: number }[];
  readonly steps: number;
  readonly everyWrite: boolean;
}

const life: fc.Arbitrary<Life> = fc.record({
  writes: fc.array(
    fc.record({ records: fc.integer({ min: 1, max: 5 }), padding: fc.constantFrom(0, 0, 1_000, 300_000) }),
    { minLength: 1, maxLength: 12 },
  ),
  steps: fc.integer({ min: 1, max: 80 }),
  everyWrite: fc.boolean(),
});

test('whatever was synced is read again, whenever power is cut, twice and three times too', {
  timeout: 300_000,
}, async () => {
  let cuts = 0;
  let synced = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 3 }), fc.nat(), async (lives, seed) => {
      const random = randomFor(seed, 'power');
      const disk = new ModelDisk();
      await disk.makeFolder(dir);
      disk.comeBack(() => 0.999);
      /** By epoch: the highest seq that was synced, and that was written at all. */
      const promised = new Map<string, number>();
      const written = new Map<string, number>();
      disk.onSynced = (path, text) => {
        const epoch = epochOf(path);
        const last = path.endsWith('.seg') ? readSegment(text).entries.at(-1)?.seq : undefined;
        if (last !== undefined) promised.set(epoch, Math.max(last, promised.get(epoch) ?? 0));
      };
      for (const each of lives) {
        await live(disk, each, written, promised);
        cuts += 1;
        disk.comeBack(() => random.next());
      }
      const spool = await open(disk, true);
      try {
        for (const [name, last] of promised) {
          synced += last;
          const epoch = spool.epochs.find(({ meta }) => meta.epoch === name);
          expect(await missing(epoch, last)).toEqual([]);
          expect(epoch?.written).toBeLessThanOrEqual(written.get(name) ?? 0);
        }
      } finally {
        await spool.close();
      }
    }),
    { numRuns: 150, seed: 20 },
  );
  expect(cuts).toBeGreaterThan(150);
  expect(synced).toBeGreaterThan(500);
});

async function live(
  disk: ModelDisk,
  { writes, steps, everyWrite }: Life,
  written: Map<string, number>,
  promised: ReadonlyMap<string, number>,
): Promise<void> {
  disk.cutAfter(steps);
  const spool = await open(disk, everyWrite).catch((error: unknown) => {
    // Power went while it began.
    if (disk.isOff) return null;
    throw error;
  });
  if (spool === null) return;
  spool.setContext(CONTEXT);
  const { epoch } = spool.present.meta;
  for (const { records, padding } of writes) {
    for (let i = 0; i < records; i += 1) {
      const seq = (written.get(epoch) ?? 0) + 1;
      written.set(epoch, seq);
      spool.append(record(seq, padding), null);
    }
    await spool.flush();
    if (everyWrite && !disk.isOff) expect(promised.get(epoch)).toBe(written.get(epoch));
  }
  if (!disk.isOff) disk.cutAfter(1);
  await spool.close();
}

function open(disk: ModelDisk, everyWrite: boolean): Promise<Spool> {
  return Spool.open(
    {
      dir,
      cluster: 'prod',
      node: 'node-1',
      maxBytes: 64 * MIB,
      fsync: millis(everyWrite ? 0 : 1),
      keep: millis(0),
      log: createLogger('fatal', 'test'),
      files: disk,
    },
    AbortSignal.timeout(20_000),
  );
}

/** What of the seqs up to this one is neither read, as it was written, nor declared. */
async function missing(epoch: Epoch | undefined, last: number): Promise<number[]> {
  const all = Array.from({ length: last }, (_, i) => i + 1);
  if (epoch === undefined) return all;
  const read = new Set<number>();
  for (let from = 1; ; ) {
    const entries = await epoch.read(from, 500, MIB);
    for (const { seq, record } of entries) {
      expect(record).toMatchObject({ t: seq });
      read.add(seq);
    }
    const end = entries.at(-1);
    if (end === undefined) break;
    from = end.seq + 1;
  }
  return all.filter((seq) => !read.has(seq) && !epoch.isDeclared(seq, seq));
}

const epochOf = (path: string): string => {
  const name = basename(dirname(path));
  return name.slice(name.indexOf('-') + 1);
};

const record = (n: number, padding: number): EvidenceRecord => ({
  kind: 'event',
  t: offset(n),
  id: `c${'x'.repeat(padding)}`,
  type: 1,
  createdNs: '1',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
});
