/*
 * Spools in a temporary folder, which are closed after each test, with records to write and to read again.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import type { Epoch } from '../../src/agent/spool/epoch.ts';
import { openSpool, type SpoolOptions } from '../../src/agent/spool/openSpool.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import { createLogger } from '../../src/platform/log.ts';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { millis, offset } from '../../src/protocol/units.ts';
import { event } from './records.ts';
import { passes } from './waitFor.ts';

export const CONTEXT = {
  runtime: { name: 'containerd', version: '2.1.9' },
  kubelet: '',
  agent: '0.1.0',
  settings: { relistPeriod: 5e6, overdueAfter: 2e6, missedAfter: 30e6, lateAfter: 1e6 },
};

export const spoolOptions = (dir: string): SpoolOptions => ({
  dir,
  cluster: 'prod',
  node: 'node-1',
  maxBytes: 64 * 1024 ** 2,
  fsyncInterval: millis(0),
  retention: millis(0),
  sweepInterval: millis(30_000),
  log: createLogger('fatal', 'test'),
});

export class SpoolBed {
  dir = '';
  readonly #defaults: () => Partial<SpoolOptions>;
  readonly #open: Spool[] = [];

  /** Registers hooks, so it must be called outside of tests. */
  constructor(defaults: () => Partial<SpoolOptions> = () => ({})) {
    this.#defaults = defaults;
    beforeEach(() => {
      this.dir = mkdtempSync(join(tmpdir(), 'plegwatch-spool-'));
    });
    afterEach(async () => {
      await this.closeAll();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  async open(more: Partial<SpoolOptions> = {}): Promise<Spool> {
    const options = { ...spoolOptions(this.dir), ...this.#defaults(), ...more };
    const spool = await openSpool(options, AbortSignal.timeout(240_000));
    this.#open.push(spool);
    return spool;
  }

  async close(spool: Spool): Promise<void> {
    this.#open.splice(this.#open.indexOf(spool), 1);
    await spool.close();
  }

  /** Closes all spools and begins with an empty folder. */
  async renew(): Promise<void> {
    await this.closeAll();
    rmSync(this.dir, { recursive: true, force: true });
    this.dir = mkdtempSync(join(tmpdir(), 'plegwatch-spool-'));
  }

  async closeAll(): Promise<void> {
    for (const spool of this.#open.splice(0)) await spool.close();
  }
}

export const spoolRecord = (n: number, padding = 0): EvidenceRecord =>
  event(n, { t: offset(n), containerId: `c${n}-${'x'.repeat(padding)}`, eventType: 1, createdNs: '1' });

export async function write(spool: Spool, from: number, to: number, padding = 0): Promise<void> {
  if (spool.context === null) spool.setContext(CONTEXT);
  for (let n = from; n <= to; n += 1) spool.append(spoolRecord(n, padding), null);
  await spool.flush();
}

/** Waits until the spool writes to a disk that works again: a retry that is under way may have failed before. */
export const writesAgain = (spool: Spool): Promise<void> =>
  passes(async () => {
    await spool.flush();
    expect(spool.error).toBeNull();
  });

/** The seqs of all readable records of an epoch, read batch by batch as the shipper does. */
export async function readAll(epoch: Epoch): Promise<number[]> {
  const seqs: number[] = [];
  for (let from = 1; ; ) {
    const entries = await epoch.read(from, 500, 256 * 1024);
    const last = entries.at(-1);
    if (last === undefined) return seqs;
    for (const entry of entries) {
      expect(entry.record).toMatchObject({ t: entry.seq });
      seqs.push(entry.seq);
    }
    from = last.seq + 1;
  }
}

export const upTo = (n: number, from = 1): number[] =>
  Array.from({ length: n - from + 1 }, (_, i) => i + from);

/** The files of an epoch. */
export const segmentsOf = (epoch: Epoch): string[] => epoch.segments.map(({ file }) => join(epoch.dir, file));
export const onlySegment = (epoch: Epoch): string => segmentsOf(epoch)[0] ?? '';
/** The oldest epoch of an earlier incarnation. */
export const earlierOf = (spool: Spool): Epoch => {
  const [epoch] = spool.epochs;
  if (epoch === undefined || epoch === spool.current) throw new Error('there is no earlier epoch');
  return epoch;
};
