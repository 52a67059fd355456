/*
 * Each kind of call to the disk fails, in each phase of a history of two agents: opening, writing, evicting, sweeping, closing. The agent goes on or
 * starts again, whatever fails, and no record that it counted as durable is lost in a power cut without being declared.
 *
 * A recorded run gives the kinds of calls. One call of each fails, or all of them until the agent ends. A failed fsync drops its data, as a
 * kernel does.
 */
import { basename, dirname } from 'node:path';
import { expect, test, vi } from 'vitest';
import { type DiskCall, FaultyDisk } from '../../../test/support/faultyDisk.ts';
import { ModelDisk } from '../../../test/support/modelDisk.ts';
import { runsOf } from '../../../test/support/runs.ts';
import { readAll, SpoolBed, upTo, write } from '../../../test/support/spoolBed.ts';
import { millis, seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import type { Spool } from './spool.ts';

/** Small segments, so that hundreds of histories take seconds. */
const { SEGMENT_BYTES } = vi.hoisted(() => ({ SEGMENT_BYTES: 16_384 }));
vi.mock('./segment.ts', async (original) => ({ ...(await original<object>()), SEGMENT_BYTES }));
/** The size of a record: two fill a segment, and the space of the spool is enough for one segment beside those that are written. */
const BYTES = 9_000;
const MAX_BYTES = 3 * SEGMENT_BYTES;
const bed = new SpoolBed();

type Fallback = 'refuse' | 'memory';

interface Fault {
  readonly call: string;
  readonly code: 'EIO' | 'ENOSPC';
  /** Whether every such call fails until the agent ends, or only the first one. */
  readonly lasts: boolean;
}

/** By epoch: the seqs that the agent counted as durable, and how far they are acknowledged. */
interface Known {
  readonly durable: Map<string, Set<number>>;
  readonly acknowledged: Map<string, number>;
}

class History {
  readonly calls = new Set<string>();
  readonly known: Known = { durable: new Map(), acknowledged: new Map() };
  readonly #fallback: Fallback;
  readonly #fault: Fault | null;
  readonly #model = new ModelDisk();
  readonly #disk = new FaultyDisk(this.#model);
  #phase = '';
  #underWay = 0;
  #hasFailed = false;
  /** The first seq of the second agent that was written to memory. */
  #inMemoryAtCut = Number.POSITIVE_INFINITY;

  constructor(fallback: Fallback, fault: Fault | null) {
    this.#fallback = fallback;
    this.#fault = fault;
    this.#disk.faultOf = (call) => this.#codeOf(call);
  }

  /** Two agents, then a power cut. Returns the durable records that the third agent neither reads nor declares lost. */
  async run(): Promise<string[]> {
    await this.#model.makeFolder(bed.dir);
    this.#model.comeBack(() => 0.999);
    // Every write is synced at once, or those before a heartbeat are.
    await this.#agent('first', 0);
    await this.#agent('second', 3_600_000);
    expect(this.#fault === null || this.#hasFailed).toBe(true);
    this.#mend();
    this.#model.cutAfter(1);
    this.#model.comeBack(() => 0);
    const spool = await bed.open({ files: this.#disk });
    return this.#lostFor(spool);
  }

  async #agent(name: string, fsyncMs: number): Promise<void> {
    this.#phase = `${name} opens`;
    const spool = await this.#open(fsyncMs);
    this.#phase = `${name} begins`;
    await write(spool, 1, 1);
    await this.#beat(spool, () => spool.startHeartbeat(() => spool.start));
    for (const n of [2, 4]) {
      await this.#write(spool, n, n + 1, fsyncMs === 0);
      if (name === 'second') this.#acknowledge(spool);
      await this.#beat(spool, () => this.#pass(31_000));
      this.#phase = `${name} goes on`;
    }
    // One that a heartbeat syncs, not the end of its segment.
    this.#phase = `${name} idles`;
    await this.#write(spool, 6, 6, fsyncMs === 0, 0);
    await this.#beat(spool, () => this.#pass(31_000));
    this.#phase = `${name} ends`;
    await this.#beat(spool, () => spool.stopHeartbeat(spool.start));
    // Lasting faults last until here.
    if (this.#hasFailed) this.#mend();
    this.#phase = `${name} is read`;
    expect(await missingIn(spool.current)).toEqual([]);
    await bed.close(spool);
  }

  /** A supervisor starts an agent again that the disk kept from starting. */
  async #open(fsyncMs: number): Promise<Spool> {
    const options = {
      ...{ files: this.#disk, fallback: this.#fallback, maxBytes: MAX_BYTES },
      ...{ fsyncInterval: millis(fsyncMs), retention: millis(-1) },
    };
    try {
      return await bed.open(options);
    } catch (error) {
      expect(this.#fallback).toBe('refuse');
      expect(error).toMatchObject({ code: 'SPOOL_UNUSABLE' });
      this.#mend();
      return bed.open(options);
    }
  }

  async #write(spool: Spool, from: number, to: number, isSynced: boolean, bytes = BYTES): Promise<void> {
    const before = spool.current.lastSeq;
    const wasInMemory = spool.isInMemory;
    await write(spool, from, to, bytes);
    // A failed write is tried again after a second; here at once.
    for (let i = 0; i < 2; i += 1) await spool.flush();
    if (isSynced && !wasInMemory && !spool.isInMemory)
      this.#isDurable(spool.current, before + 1, spool.current.lastSeq);
    // A power cut leaves nothing that knows of these. The first agent only ends.
    if (!isSynced && spool.isInMemory) this.#inMemoryAtCut = Math.min(this.#inMemoryAtCut, before + 1);
  }

  /** Everything that a heartbeat on the disk covers counts as durable. */
  async #beat(spool: Spool, work: () => Promise<unknown>): Promise<void> {
    await work();
    await this.#settled();
    const text = await this.#model.readText(`${bed.dir}/heartbeat.json`).catch(() => '{}');
    const { mono, lastSeq } = JSON.parse(text) as { mono?: number; lastSeq?: number };
    if (mono === spool.start)
      this.#isDurable(spool.current, 1, Math.min(lastSeq ?? 0, this.#inMemoryAtCut - 1));
  }

  #isDurable({ meta }: Epoch, from: number, to: number): void {
    const seqs = this.known.durable.get(meta.epoch) ?? new Set();
    for (const each of upTo(to, from)) seqs.add(each);
    this.known.durable.set(meta.epoch, seqs);
  }

  #acknowledge(spool: Spool): void {
    for (const epoch of spool.epochs) {
      const acked = epoch === spool.current ? epoch.lastSeq - 1 : epoch.lastSeq;
      epoch.acknowledge(seq(Math.max(0, acked)));
      this.known.acknowledged.set(epoch.meta.epoch, acked);
    }
  }

  async #pass(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
    await this.#settled();
  }

  /** Waits until no call to the disk is under way, and none follows. */
  async #settled(): Promise<void> {
    for (let idle = 0, seen = this.#underWay; idle < 8; idle += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (seen !== this.#underWay) idle = 0;
      seen = this.#underWay;
    }
  }

  #mend(): void {
    this.#disk.mend();
    this.#model.failSyncs(0);
  }

  #codeOf(call: DiskCall): string | null {
    this.#underWay += 1;
    const kind = `${this.#phase}: ${call.name} ${kindOf(call.path)}`;
    this.calls.add(kind);
    const fault = this.#fault;
    if (fault === null || fault.call !== kind || (this.#hasFailed && !fault.lasts)) return null;
    this.#hasFailed = true;
    if (call.name !== 'datasync') return fault.code;
    this.#model.failSyncs(1, fault.code);
    return null;
  }

  async #lostFor(spool: Spool): Promise<string[]> {
    const lost: string[] = [];
    for (const [name, durable] of this.known.durable) {
      const epoch = spool.epochs.find(({ meta }) => meta.epoch === name);
      const read = new Set(epoch === undefined ? [] : await readAll(epoch));
      const acknowledged = this.known.acknowledged.get(name) ?? 0;
      for (const at of durable)
        if (at > acknowledged && !read.has(at) && !isDeclared(epoch, at)) lost.push(`${name}:${at}`);
    }
    return lost;
  }
}

/** The store counts everything below the oldest seq of an epoch as lost. */
const isDeclared = (epoch: Epoch | undefined, at: number): boolean =>
  epoch !== undefined && (epoch.isDeclaredLost(at, at) || (at < epoch.oldestSeq && at <= epoch.lastSeq));

/** The kind of the file, whatever its epoch is called. */
function kindOf(path: string): string {
  const name = path === bed.dir ? 'spool' : basename(path);
  if (name.endsWith('.seg')) return 'segment';
  return basename(dirname(path)) === 'epochs' ? 'epoch' : name;
}

/** The seqs that are neither read nor declared lost, however often the shipper tries. */
async function missingIn(epoch: Epoch): Promise<number[]> {
  for (let tries = 1; ; tries += 1) {
    const read = new Set(await readAll(epoch).catch(() => []));
    const missing = upTo(epoch.lastSeq).filter((at) => !read.has(at) && !isDeclared(epoch, at));
    if (missing.length === 0 || tries > 20) return missing;
  }
}

async function kindsOfCalls(fallback: Fallback): Promise<string[]> {
  const history = new History(fallback, null);
  expect(await history.run()).toEqual([]);
  await bed.renew();
  return [...history.calls];
}

/** The failure under a fault; null if nothing did. */
async function outcomeOf(fallback: Fallback, fault: Fault): Promise<string | null> {
  try {
    const lost = await new History(fallback, fault).run();
    return lost.length === 0 ? null : `lost ${lost.join(' ')}`;
  } catch (error) {
    return String(error).slice(0, 300);
  } finally {
    await bed.renew();
  }
}

/** In which phase a call fails that is made in both. */
const SUPERSEDED: Readonly<Record<string, string>> = {
  'first opens': 'second opens',
  'first begins': 'first goes on',
  'second begins': 'second goes on',
};
const READING = new Set(['list', 'read', 'readText', 'stat']);

function faultsOf(calls: readonly string[], fallback: Fallback): Fault[] {
  const [once, lasting] = fallback === 'refuse' ? (['EIO', 'ENOSPC'] as const) : (['ENOSPC', 'EIO'] as const);
  return calls.flatMap((call): Fault[] => {
    const [phase = '', what = ''] = call.split(': ');
    if (calls.includes(`${SUPERSEDED[phase]}: ${what}`)) return [];
    const name = what.split(' ')[0] ?? '';
    if (READING.has(name) || phase.endsWith('is read')) return [{ call, code: 'EIO', lasts: false }];
    const fault: Fault = { call, code: once, lasts: false };
    // A close fails with what was written to the file, and not again and again.
    return name === 'close' ? [fault] : [fault, { call, code: lasting, lasts: true }];
  });
}

test.each<Fallback>(['refuse', 'memory'])(
  'with the fallback %s, no failing call to the disk ends the agent or loses a durable record undeclared',
  { timeout: 600_000 },
  async (fallback) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    try {
      const calls = await kindsOfCalls(fallback);
      expect(calls.length).toBeGreaterThan(80);
      const failed: string[] = [];
      const faults = faultsOf(calls, fallback);
      const step = Math.ceil(faults.length / runsOf(faults.length));
      for (const fault of faults.filter((_, i) => i % step === 0)) {
        const outcome = await outcomeOf(fallback, fault);
        if (outcome !== null)
          failed.push(`${fault.call} ${fault.code}${fault.lasts ? ' lasting' : ''}: ${outcome}`);
      }
      expect(failed).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  },
);
