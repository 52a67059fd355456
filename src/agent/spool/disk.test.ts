/*
 * The spool on a disk that cannot be used, must not be filled further, or belongs to another node.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLogger } from '../../platform/log.ts';
import type { EvidenceRecord } from '../../protocol/record.ts';
import { millis, offset, seq } from '../../protocol/units.ts';
import { LOCAL_FILES, type SpoolFiles } from './files.ts';
import { openSpool, type SpoolOptions } from './openSpool.ts';
import type { Spool } from './spool.ts';

const MIB = 1024 * 1024;

/** The machine's disk with a usage that a test sets, and without space for another byte if the test says so. */
class AdjustableDisk implements SpoolFiles {
  used = 0.5;
  hasSpace = true;
  /** How many bytes removed files have freed while there is no other space. */
  freed = 0;

  async open(path: string, flags: 'r' | 'w' | 'ax') {
    const handle = await LOCAL_FILES.open(path, flags);
    const write = (text: string) => {
      if (!this.hasSpace && this.freed < text.length)
        throw Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' });
      this.freed -= this.hasSpace ? 0 : text.length;
      return handle.write(text);
    };
    return {
      write: async (text: string) => write(text),
      read: (into: Buffer, at: number, length: number, from: number) => handle.read(into, at, length, from),
      datasync: () => handle.datasync(),
      sync: () => handle.sync(),
      close: () => handle.close(),
    };
  }
  async remove(path: string) {
    if (existsSync(path) && statSync(path).isFile()) this.freed += statSync(path).size;
    await LOCAL_FILES.remove(path);
  }
  usage = async () => this.used;
  readText = LOCAL_FILES.readText;
  makeFolder = LOCAL_FILES.makeFolder;
  list = LOCAL_FILES.list;
  rename = LOCAL_FILES.rename;
  stat = LOCAL_FILES.stat;
}

let dir: string;
let disk: AdjustableDisk;
const spools: Spool[] = [];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'performance'] });
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-disk-'));
  disk = new AdjustableDisk();
});
afterEach(async () => {
  for (const spool of spools.splice(0)) await spool.close();
  vi.useRealTimers();
  rmSync(dir, { recursive: true, force: true });
});

async function open(more: Partial<SpoolOptions> = {}): Promise<Spool> {
  const spool = await openSpool(
    {
      ...{
        dir,
        cluster: 'prod',
        node: 'node-1',
        maxBytes: 64 * MIB,
        fsyncInterval: millis(0),
        retention: millis(86_400_000),
        sweepInterval: millis(30_000),
      },
      log: createLogger('fatal', 'test'),
      files: disk,
      ...more,
    },
    AbortSignal.timeout(20_000),
  );
  spools.push(spool);
  return spool;
}

async function close(spool: Spool): Promise<void> {
  spools.splice(spools.indexOf(spool), 1);
  await spool.close();
}

const record = (n: number, padding: number): EvidenceRecord => ({
  type: 'container_event',
  t: offset(n),
  containerId: `c${n}-${'x'.repeat(padding)}`,
  eventType: 1,
  createdNs: '1',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
});

async function write(spool: Spool, from: number, to: number, padding = 0): Promise<void> {
  if (spool.context === null)
    spool.setContext({ runtime: { name: 'r', version: '1' }, kubelet: '', agent: '1' });
  for (let n = from; n <= to; n += 1) spool.append(record(n, padding), null);
  await spool.flush();
}

async function readAll({ current }: Spool): Promise<number[]> {
  const seqs: number[] = [];
  for (let from = 1; ; ) {
    const entries = await current.read(from, 500, MIB);
    const last = entries.at(-1);
    if (last === undefined) return seqs;
    seqs.push(...entries.map((entry) => entry.seq));
    from = last.seq + 1;
  }
}

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
const segments = (spool: Spool) => readdirSync(spool.current.dir).filter((name) => name.endsWith('.seg'));

describe('a disk that is over 90 % full', () => {
  test('keeps the last seq of an epoch whose segments were all evicted', async () => {
    const spool = await open();
    await write(spool, 1, 3);
    const { epoch } = spool.current.meta;
    await close(spool);
    const next = await open();
    const last = next.epochs.find(({ meta }) => meta.epoch === epoch);
    if (last === undefined) throw new Error('the epoch is gone');
    last.acknowledge(seq(3));
    disk.used = 0.95;
    await write(next, 1, 1);
    expect(last.segments).toEqual([]);
    await close(next);
    const found = (await open()).epochs.find(({ meta }) => meta.epoch === epoch);
    expect(found).toMatchObject({ lastSeq: 3, oldestSeq: 4 });
  });

  test('is not written to: records wait in the buffer until there is space', async () => {
    const spool = await open();
    await write(spool, 1, 3);
    disk.used = 0.95;
    await vi.advanceTimersByTimeAsync(6_000);
    await write(spool, 4, 6);
    expect(spool.error).toBe('the disk is over 90 % full');
    expect(await readAll(spool)).toEqual(upTo(3));
    disk.used = 0.85;
    await vi.advanceTimersByTimeAsync(6_000);
    await spool.flush();
    expect(spool.error).toBeNull();
    expect(await readAll(spool)).toEqual(upTo(6));
  });

  test('first gets space from acknowledged segments, whatever their retention', async () => {
    const spool = await open();
    await write(spool, 1, 2_500, 300);
    await write(spool, 2_501, 4_500, 300);
    expect(segments(spool).length).toBeGreaterThan(1);
    spool.current.acknowledge(seq(4_500));
    vi.spyOn(disk, 'usage').mockImplementation(async () => (segments(spool).length > 1 ? 0.95 : 0.89));
    await vi.advanceTimersByTimeAsync(6_000);
    await write(spool, 4_501, 4_501);
    expect(spool.error).toBeNull();
    expect(spool.current.lastSeq).toBe(4_501);
    expect(spool.dropped).toBe(0);
  });

  test('is measured by the usage of its file system, between 0 and 1', async () => {
    const full = await LOCAL_FILES.usage(dir);
    expect(full).toBeGreaterThan(0);
    expect(full).toBeLessThanOrEqual(1);
  });
});

describe('with --spool-fallback memory', () => {
  const fallback = 'memory';

  test('a folder that cannot be used makes the spool run from memory and report it', async () => {
    writeFileSync(join(dir, 'file'), '');
    const spool = await open({ dir: join(dir, 'file'), fallback });
    await write(spool, 1, 5);
    expect(spool.error).toContain('runs from memory: ');
    expect(spool.isInMemory).toBe(true);
    expect(await readAll(spool)).toEqual(upTo(5));
    expect(readFileSync(join(dir, 'file'), 'utf8')).toBe('');
  });

  test('a spool whose disk fills up goes on in memory without a loss, and returns when there is space', async () => {
    const spool = await open({ fallback });
    await write(spool, 1, 3);
    disk.hasSpace = false;
    await write(spool, 4, 6);
    expect(spool.error).toContain('runs from memory: ENOSPC');
    expect(await readAll(spool)).toEqual(upTo(6));
    expect(spool.current.lost).toEqual([]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(spool.isInMemory).toBe(true);
    disk.hasSpace = true;
    // A sweep is skipped while the one before is under way.
    await vi.waitFor(async () => {
      await vi.advanceTimersByTimeAsync(30_000);
      expect(spool.error).toBeNull();
    }, 20_000);
    await write(spool, 7, 9);
    expect(await readAll(spool)).toEqual(upTo(9));
    const onDisk = segments(spool).map((name) => readFileSync(join(spool.current.dir, name), 'utf8'));
    expect(onDisk.join('')).toContain('"s":9');
    expect(onDisk.join('')).not.toContain('"s":5');
  });

  test('over the limit in memory the oldest records there are dropped and declared lost, those on disk stay', async () => {
    const spool = await open({ fallback });
    await write(spool, 1, 3);
    disk.hasSpace = false;
    for (let n = 4; n < 20_000; n += 500) await write(spool, n, n + 499, 1_000);
    expect(spool.bytes).toBeLessThan(18 * MIB);
    const [range] = spool.current.lost;
    expect(range).toMatchObject({ from: 4, cause: 'spool_memory_full' });
    expect(await readAll(spool)).toEqual(
      upTo(spool.current.lastSeq).filter((n) => n < 4 || n > (range?.to ?? 0)),
    );
    expect(spool.dropped).toBe((range?.to ?? 0) - 3);
  });

  test('an epoch on disk is not retired while the spool runs from memory', async () => {
    const first = await open({ fallback });
    await write(first, 1, 3);
    const { epoch } = first.current.meta;
    await close(first);
    const spool = await open({ fallback, retention: millis(-1) });
    const last = spool.epochs.find(({ meta }) => meta.epoch === epoch);
    if (last === undefined) throw new Error('the epoch is gone');
    disk.hasSpace = false;
    await write(spool, 1, 3);
    expect(spool.isInMemory).toBe(true);
    last.acknowledge(seq(3));
    await vi.advanceTimersByTimeAsync(31_000);
    await close(spool);
    disk.hasSpace = true;
    const found = (await open({ fallback })).epochs.find(({ meta }) => meta.epoch === epoch);
    expect(found?.lastSeq).toBe(3);
  });

  test('records in memory are gone for the next incarnation', async () => {
    const spool = await open({ fallback });
    await write(spool, 1, 3);
    disk.hasSpace = false;
    await write(spool, 4, 6);
    await close(spool);
    disk.hasSpace = true;
    const next = await open({ fallback });
    expect(next.epochs[0]?.lastSeq).toBe(3);
  });

  test('an incarnation on disk has a higher number than an earlier one in memory', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'performance', 'Date'], now: Date.UTC(2026, 5, 1) });
    await close(await open({ fallback }));
    vi.setSystemTime(Date.UTC(2026, 6, 1));
    const file = join(dir, 'file');
    writeFileSync(file, '');
    const inMemory = await open({ fallback, dir: join(file, 'spool') });
    vi.setSystemTime(Date.UTC(2026, 6, 2));
    const next = await open({ fallback });
    expect(next.current.meta.incarnation).toBeGreaterThan(inMemory.current.meta.incarnation);
  });

  test('an absurd clock does not make an incarnation number too large for the envelope', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'performance', 'Date'], now: Date.UTC(2150, 0, 1) });
    expect((await open()).current.meta.incarnation).toBe(1);
  });

  test('without the fallback a folder that cannot be used is an error', async () => {
    writeFileSync(join(dir, 'file'), '');
    await expect(open({ dir: join(dir, 'file') })).rejects.toMatchObject({ code: 'SPOOL_UNUSABLE' });
  });
});

describe('the spool of another', () => {
  const machine = '4c4c4544-0001';
  const asides = () => readdirSync(dir).filter((name) => name.startsWith('foreign-'));

  test.each([
    ['node', { machine, node: 'node-2' }],
    ['cluster', { machine, cluster: 'other' }],
    ['machine (a cloned disk)', { machine: '4c4c4544-0002' }],
  ])('%s is quarantined unchanged, and a new spool begins', async (_, other) => {
    const first = await open({ machine });
    await write(first, 1, 3);
    await first.startHeartbeat(() => first.start);
    await close(first);
    const left = readdirSync(join(dir, 'epochs'));
    const spool = await open(other);
    expect(spool.epochs).toHaveLength(1);
    expect(spool.quarantined?.lastAlive).toEqual(expect.any(Number));
    expect(spool.lastObserved).toBeNull();
    const [aside = ''] = asides();
    expect(readdirSync(join(dir, aside, 'epochs'))).toEqual(left);
    expect(readdirSync(join(dir, aside, 'epochs', left[0] ?? '')).some((name) => name.endsWith('.seg'))).toBe(
      true,
    );
  });

  test('machine cannot be recognized when either machine id is unknown', async () => {
    await close(await open({ machine }));
    await close(await open({ machine: '' }));
    const spool = await open({ machine });
    expect(asides()).toEqual([]);
    expect(spool.quarantined).toBeNull();
  });
});

test('losses are saved on a full disk, in the space of the reserve', async () => {
  const spool = await open();
  expect(statSync(join(dir, 'reserve')).size).toBeGreaterThan(4_096);
  await write(spool, 1, 3);
  disk.hasSpace = false;
  for (let n = 4; n < 9_000; n += 500) await write(spool, n, n + 499, 1_000);
  const gone = spool.current.lost.flatMap(({ from, to }) => upTo(to).slice(from - 1));
  expect(gone.length).toBe(spool.dropped);
  // Every seq up to the last one is readable or lost, although others are still in the buffer.
  const there = new Set([...gone, ...(await readAll(spool))]);
  expect(upTo(spool.current.lastSeq).filter((n) => !there.has(n))).toEqual([]);
  await close(spool);
  const lost: unknown = JSON.parse(readFileSync(join(spool.current.dir, 'lost.json'), 'utf8'));
  expect(lost).toEqual(spool.current.lost);
  expect(existsSync(join(dir, 'reserve'))).toBe(false);
  disk.hasSpace = true;
  await open();
  expect(existsSync(join(dir, 'reserve'))).toBe(true);
});
