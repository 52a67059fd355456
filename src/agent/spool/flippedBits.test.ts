/*
 * The cost of a flipped bit in a segment, and of a block that is read from another place: through the recovery and the reader of an agent, on the
 * files of a spool. Where they are read thousands of times, a copy in memory is read.
 */
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FaultyDisk, SECTOR_BYTES } from '../../../test/support/faultyDisk.ts';
import {
  event,
  hexId,
  missedFinding,
  nodeState,
  relistMinute,
  streamSession,
} from '../../../test/support/records.ts';
import { runsOf } from '../../../test/support/runs.ts';
import {
  CONTEXT,
  earlierOf,
  onlySegment,
  readAll,
  SpoolBed,
  upTo,
  write,
} from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import type { EvidenceRecord, RecordOf, RecordType } from '../../protocol/record.ts';
import { seq, shift } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import { LOCAL_FILES, type SpoolFiles } from './files.ts';
import { MemoryFiles } from './memoryFiles.ts';
import { recoverEpochs } from './recovery.ts';
import { SEGMENT_BYTES } from './segment.ts';
import { lineAt, parseSegment, recordJson } from './segmentFormat.ts';

const bed = new SpoolBed();
const MIB = 1024 * 1024;
const NEWLINE = 10;
/** It only computes, and gets a small share of a busy machine. */
const TIMEOUT_MS = 1_200_000;

const OF_EACH_TYPE: { readonly [K in RecordType]: RecordOf<K> } = {
  container_event: event(1, { exit: { code: 137, reason: 'OOMKilled' } }),
  relist_change: {
    type: 'relist_change',
    t: 2,
    containerId: hexId(2),
    isSandbox: false,
    window: { from: 1, to: 2 },
    oldState: 'running',
    newState: 'exited',
  },
  finding: missedFinding({ proof: { v: 1, name: 'Grüße, 世界 𝄞' } }),
  finding_resolved: { type: 'finding_resolved', t: 4, findingId: '5f7c0f5e-8f7a-4a55-9a55-3f1f0a5d3b11' },
  event_overdue: {
    type: 'event_overdue',
    t: 5,
    findingId: '5f7c0f5e-8f7a-4a55-9a55-3f1f0a5d3b12',
    containerId: hexId(5),
    eventType: 'STARTED',
    window: { from: null, to: 5 },
    occurred: null,
  },
  stream_session: streamSession({ code: 'UNAVAILABLE', message: 'the runtime ended\n"so"' }),
  gap: {
    type: 'gap',
    t: 7,
    gapId: '5f7c0f5e-8f7a-4a55-9a55-3f1f0a5d3b13',
    scope: 'stream',
    cause: 'reader_died',
    from: 1,
    to: 7,
  },
  mode_change: {
    type: 'mode_change',
    t: 8,
    notBefore: 1,
    model: 'EventedCache',
    from: 'Unknown',
    to: 'Evented',
    reason: 'first_scrape',
    proof: { v: 1 },
  },
  relist_minute: relistMinute({ lists: [1, 2, 3, 4, 0, 5], hist: [1, 0, 2] }),
  node_state: nodeState({}) as RecordOf<'node_state'>,
};

/** A line of the format; of a record that is not there. */
const IMITATION = `12345678 ${JSON.stringify({ s: 99, c: 1, r: {} })}\n`;

const RECORDS: readonly EvidenceRecord[] = [
  ...Object.values(OF_EACH_TYPE),
  // One flipped bit makes a newline of each of these.
  streamSession({ message: ['J', '*', 'Ê'].map((each) => each + IMITATION).join('') }),
  event(12),
];

/** A disk that recovery cannot write to, so that it finds the same every time. */
function readOnly(files: SpoolFiles = LOCAL_FILES): FaultyDisk {
  const disk = new FaultyDisk(files);
  disk.faultOf = ({ name }) => (name === 'write' ? 'EROFS' : null);
  return disk;
}

/** A copy of the spool in memory. */
async function copied(): Promise<SpoolFiles> {
  const copy = new MemoryFiles();
  for (const each of readdirSync(bed.dir, { recursive: true, withFileTypes: true })) {
    if (!each.isFile()) continue;
    const path = join(each.parentPath, each.name);
    const file = await copy.open(path, 'w');
    await file.write(readFileSync(path, 'utf8'));
  }
  return copy;
}

interface Written {
  readonly epoch: Epoch;
  readonly records: readonly EvidenceRecord[];
  readonly path: string;
  readonly bytes: Buffer;
}

/** Writes an epoch of one segment. */
async function written(records: readonly EvidenceRecord[]): Promise<Written> {
  const spool = await bed.open();
  spool.setContext(CONTEXT);
  for (const record of records) spool.append(record, null);
  await spool.flush();
  await bed.close(spool);
  const epoch = spool.current;
  expect(epoch.segments).toHaveLength(1);
  const path = onlySegment(epoch);
  return { epoch, records, path, bytes: readFileSync(path) };
}

/** An epoch as an agent finds it after its start. */
async function recovered({ meta }: Epoch, files: SpoolFiles): Promise<Epoch> {
  const log = createLogger('fatal', 'test');
  const epochs = await recoverEpochs({ dir: bed.dir, files, log }, null);
  const epoch = epochs.find((each) => each.meta.epoch === meta.epoch);
  if (epoch === undefined) throw new Error('the epoch is gone');
  return epoch;
}

/** The records of an epoch by their seqs, read as often as it takes until each is read or declared lost. */
async function readAgain(epoch: Epoch): Promise<Map<number, EvidenceRecord>> {
  const found = new Map<number, EvidenceRecord>();
  const isMissing = () =>
    upTo(epoch.lastSeq).some((seq) => !found.has(seq) && !epoch.isDeclaredLost(seq, seq));
  for (let tries = 0; tries < 20 && isMissing(); tries += 1) {
    for (let entries = await epoch.read(1, 500, MIB); entries.length > 0; ) {
      for (const entry of entries) found.set(entry.seq, entry.record);
      entries = await epoch.read((entries.at(-1)?.seq ?? 0) + 1, 500, MIB);
    }
  }
  return found;
}

function expectAll(
  records: readonly EvidenceRecord[],
  epoch: Epoch,
  found: ReadonlyMap<number, EvidenceRecord>,
): void {
  expect(epoch.lost).toEqual([]);
  // Quicker than a comparison of two lists by the test runner.
  expect(records.filter((record, i) => !isDeepStrictEqual(found.get(i + 1), record))).toEqual([]);
}

/** The seqs that an agent does not find after its start. Fails unless these and no others are declared, and the rest is as it was written. */
async function lostOf({ epoch: written, records }: Written, disk = readOnly()): Promise<number[]> {
  const epoch = await recovered(written, disk);
  const found = new Map<number, EvidenceRecord>();
  for (let entries = await epoch.read(1, 500, MIB); entries.length > 0; ) {
    for (const entry of entries) found.set(entry.seq, entry.record);
    entries = await epoch.read((entries.at(-1)?.seq ?? 0) + 1, 500, MIB);
  }
  const seqs = records.map((_, i) => i + 1);
  const lost = seqs.filter((seq) => !found.has(seq));
  // Quicker than a comparison of two lists by the test runner.
  const isRight = seqs.every((seq) => !found.has(seq) || isDeepStrictEqual(found.get(seq), records[seq - 1]));
  if (!isRight || found.size + lost.length !== seqs.length) throw new Error('a record that nobody wrote');
  expect(seqs.filter((seq) => epoch.isDeclaredLost(seq, seq))).toEqual(lost);
  return lost;
}

/** The lost seqs after one bit of a segment flipped. */
function lostByBit(spool: Written, files: SpoolFiles, bit: number): Promise<number[]> {
  const disk = readOnly(files);
  disk.flip(spool.path, bit);
  return lostOf(spool, disk);
}

/** Whether it is in a newline, makes one, or is in the checksum or the beginning of the JSON, which follow on one. */
function isOfFormat({ bytes }: Written, bit: number): boolean {
  const at = Math.floor(bit / 8);
  const flipped = (bytes[at] ?? 0) ^ (1 << (bit % 8));
  return flipped === NEWLINE || at - bytes.lastIndexOf(NEWLINE, at) <= 16;
}

/** The seqs of the records of which at least a part is between two bytes. */
function seqsBetween({ bytes }: Written, from: number, to: number): number[] {
  let end = 0;
  return bytes
    .toString('latin1')
    .split(/(?<=\n)(?=\n)/)
    .flatMap((line) => {
      const start = end;
      end += line.length;
      const found = / \{"s":(\d+)/.exec(line);
      return found !== null && start < to && end > from ? [Number(found[1])] : [];
    });
}

describe('a flipped bit', () => {
  test('anywhere in a segment loses at most the record that it is in', { timeout: TIMEOUT_MS }, async () => {
    const spool = await written(RECORDS);
    expect(await lostOf(spool)).toEqual([]);
    const files = await copied();
    expect(await lostOf(spool, readOnly(files))).toEqual([]);
    const bits = 8 * spool.bytes.length;
    // In each byte at least one, and each of the eight in turn.
    const step = Math.ceil(bits / runsOf(bits / 7));
    for (let bit = 0; bit < bits; bit += 1) {
      if (bit % step !== 0 && !isOfFormat(spool, bit)) continue;
      const at = Math.floor(bit / 8);
      const lost = await lostByBit(spool, files, bit);
      // In a checksum it may turn a digit into another that means the same.
      if (lost.length > 0) expect(lost).toEqual(seqsBetween(spool, at, at + 1));
    }
  });

  test('in a segment of full size loses at most one record', { timeout: TIMEOUT_MS }, async () => {
    const spool = await written(Array.from({ length: 400 }, () => RECORDS).flat());
    expect(spool.bytes.length).toBeGreaterThan(SEGMENT_BYTES);
    const files = await copied();
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 8 * spool.bytes.length - 1 }), async (bit) => {
        expect((await lostByBit(spool, files, bit)).length).toBeLessThanOrEqual(1);
      }),
      { numRuns: runsOf(10), seed: 20 },
    );
  });

  test('that makes a newline in a text before what looks like a line makes no record of it', () => {
    const file = '0000000001-abcdef12.seg';
    const jsonOf = (checksum: string): string =>
      recordJson(seq(1), 1, streamSession({ message: `J${checksum}${IMITATION.slice(8)}` }), null);
    const at = Buffer.from(lineAt(file, 0, jsonOf('00000000'))).indexOf('J00000000');
    const place = at + 1;
    // The checksum that this place needs.
    const imitated = Buffer.from(lineAt(file, 0, jsonOf('00000000'))).subarray(place + 9, -1);
    const checksum = crc32(imitated, (crc32(file) ^ place) >>> 0);
    const bytes = Buffer.from(lineAt(file, 0, jsonOf(checksum.toString(16).padStart(8, '0'))));
    const contexts = new Map([[1, { no: 1, ...CONTEXT }]]);
    expect(parseSegment(file, bytes, contexts)).toMatchObject({ last: 1, isCorrupt: false });
    bytes[at] = NEWLINE;
    expect(parseSegment(file, bytes, contexts)).toMatchObject({ entries: [], last: 0, isCorrupt: true });
  });

  test('that an agent finds in what it has written itself loses this record', async () => {
    const spool = await bed.open();
    await write(spool, 1, 10);
    const path = onlySegment(spool.current);
    const bytes = readFileSync(path);
    const at = bytes.indexOf('"s":7,');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    for (let tries = 0; tries < 20; tries += 1) await spool.current.read(1, 500, MIB);
    expect(await readAll(spool.current)).toEqual(upTo(10).filter((seq) => seq !== 7));
    expect(spool.current.lost).toEqual([{ from: 7, to: 7, cause: 'spool_unreadable' }]);
  });
});

describe('a block of another place', () => {
  const of = (records: readonly EvidenceRecord[], from: number): EvidenceRecord[] =>
    Array.from({ length: 10 }, () => records)
      .flat()
      .map((record, i) => ({ ...record, t: from + i }));

  /** Reads one block of a segment in place of another, of the same or an older segment. */
  async function lostByBlock(spool: Written, at: number, other: Buffer): Promise<number[]> {
    const bytes = Buffer.from(spool.bytes);
    other.copy(bytes, at);
    writeFileSync(spool.path, bytes);
    const lost = await lostOf(spool);
    writeFileSync(spool.path, spool.bytes);
    return lost;
  }

  const blocksOf = ({ bytes }: Written): { readonly at: number; readonly block: Buffer }[] =>
    upTo(Math.floor(bytes.length / SECTOR_BYTES)).map((n) => {
      const at = (n - 1) * SECTOR_BYTES;
      return { at, block: bytes.subarray(at, at + SECTOR_BYTES) };
    });

  test.each(['the same', 'an older'])('of %s segment loses the records of its own place', async (place) => {
    const older = await written(of(RECORDS, 1_000));
    const spool = await written(of(RECORDS, 2_000));
    const others = blocksOf(place === 'an older' ? older : spool);
    expect(others.length).toBeGreaterThan(5);
    for (const { at, block } of blocksOf(spool)) {
      // Without its only context no record can be read.
      const own = at === 0 ? upTo(spool.records.length) : seqsBetween(spool, at, at + SECTOR_BYTES);
      for (const other of others) {
        const lost = await lostByBlock(spool, at, other.block);
        // The ends of a line may be the same in both.
        if (other.block.equals(block)) expect(lost).toEqual([]);
        else expect(lost.length).toBeGreaterThanOrEqual(own.length - 2);
        expect(lost.filter((seq) => !own.includes(seq))).toEqual([]);
      }
    }
  });

  test('that an agent reads once in place of any other of a segment loses nothing, of its own or of the agent before', async () => {
    const { epoch, path, bytes, records } = await written(of(RECORDS, 1_000));
    const disk = readOnly();
    const sectors = upTo(Math.ceil(bytes.length / SECTOR_BYTES)).map((n) => n - 1);
    expect(sectors.length).toBeGreaterThan(5);
    const own = await recovered(epoch, disk);
    for (const [sector, other] of sectors.flatMap((each) => sectors.map((by) => [each, by] as const))) {
      disk.misdirect(path, sector, other, 1);
      own.forgetCache();
      expectAll(records, own, await readAgain(own));
      disk.misdirect(path, sector, other, 1);
      const next = await recovered(epoch, disk);
      expectAll(records, next, await readAgain(next));
    }
  });

  test('that an agent reads every time in place of another is lost, and its records are declared', async () => {
    const disk = new FaultyDisk();
    const spool = await bed.open({ files: disk });
    await write(spool, 1, 200);
    const { current } = spool;
    const path = onlySegment(current);
    disk.misdirect(path, 2, 4);
    const found = await readAgain(current);
    const lost = upTo(200).filter((seq) => !found.has(seq));
    expect(lost.length).toBeGreaterThan(5);
    expect(upTo(200).filter((seq) => current.isDeclaredLost(seq, seq))).toEqual(lost);
    for (const [seq, record] of found) expect(record).toMatchObject({ t: seq });
  });

  test('that is read at the end of a killed agent is one lost record, and its node counts as unobserved since the last that is right', async () => {
    const disk = new FaultyDisk();
    const spool = await bed.open();
    await write(spool, 1, 100);
    await spool.startHeartbeat(() => shift(spool.start, 100));
    await write(spool, 101, 200);
    const path = onlySegment(spool.current);
    const { startedWall } = spool.current.meta;
    await bed.close(spool);
    disk.misdirect(path, Math.floor(statSync(path).size / SECTOR_BYTES), 2);
    const next = await bed.open({ files: disk });
    const earlier = earlierOf(next);
    const found = [...(await readAgain(earlier)).keys()];
    const last = found.length;
    expect(last).toBeGreaterThan(100);
    expect(last).toBeLessThan(200 - 1);
    expect(found).toEqual(upTo(last));
    expect(earlier.lost).toEqual([{ from: last + 1, to: last + 1, cause: 'spool_corrupt' }]);
    expect(earlier.lastSeq).toBe(last + 1);
    const until = { mono: shift(spool.start, last), wall: startedWall + last, cause: 'died' };
    expect(next.lastObserved).toEqual(until);
  });

  test('that a deleted file left behind the end of a segment is not read', async () => {
    const older = await written(of(RECORDS, 1_000));
    const spool = await written(RECORDS);
    appendFileSync(spool.path, older.bytes.subarray(spool.bytes.length));
    expect(await lostOf(spool)).toEqual([]);
  });
});
