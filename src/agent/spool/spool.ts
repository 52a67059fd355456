/*
 * The spool: records on the node's own disk until the store has them.
 *
 *   <dir>/lock                         held by the one agent of this node
 *   <dir>/alive                        a sign of life, every 10 s: from here "agent down" begins
 *   <dir>/epochs/<life>-<epoch>/       one folder a life: meta.json, lost.json, <first seq>.seg
 *
 * append ──► buffer ──► write ──► may be shipped ──► fsync, together with what else was written meanwhile
 *
 * Bounded: over `maxBytes` the oldest segments go, acknowledged ones first; what had not been acknowledged is declared.
 * A write that fails is tried again in a new segment; what waits for it is bounded too.
 */
import { randomUUID } from 'node:crypto';
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { monoNow, wallNow } from '../../clock.ts';
import { messageOf, PlegwatchError } from '../../errors.ts';
import type { Context } from '../../evidence/batch.ts';
import type { EvidenceObject, EvidenceRecord } from '../../evidence/record.ts';
import { type Micros, type Mono, type Seq, seq, type Wall, wall } from '../../evidence/units.ts';
import type { Logger } from '../../log.ts';
import { Epoch, type EpochMeta, type Hole, type Segment } from './epoch.ts';
import { lockSpool, type SpoolLock } from './lock.ts';
import { contextLine, readSegment, recordLine } from './segment.ts';

export interface SpoolOptions {
  readonly dir: string;
  readonly cluster: string;
  readonly node: string;
  readonly maxBytes: number;
  /** How long written records may wait for the disk; 0 = every write. */
  readonly fsync: Micros;
  /** How long acknowledged segments stay. */
  readonly keep: Micros;
  readonly log: Logger;
}

const SEGMENT_BYTES = 1024 * 1024;
/** What may wait in memory while writes fail. */
const BUFFER_BYTES = 8 * 1024 * 1024;
const ALIVE_MS = 10_000;
const SWEEP_MS = 30_000;
/** A spool without a past counts its lives from the seconds since this moment, so that they come after a lost spool's. */
const LIVES_SINCE_S = Date.UTC(2026, 0, 1) / 1000;

/** A line that waits to be written; a context has the seq of the record that follows it. */
interface Pending {
  readonly is: 'context' | 'record';
  readonly seq: Seq;
  readonly line: string;
}

export class Spool {
  /** The position on the monotonic clock that the present epoch's offsets count from. */
  readonly start: Mono;
  readonly epochs: readonly Epoch[];
  /** The last sign of life of the agent before this one, by the wall clock; null on a new spool. */
  readonly lastAlive: Wall | null;
  /** Called after every write, so that shipping need not ask. */
  onWritten: () => void = () => undefined;
  readonly #options: SpoolOptions;
  readonly #lock: SpoolLock;
  readonly #present: Epoch;
  readonly #timers: NodeJS.Timeout[];
  #context: Context | null = null;
  #next = 1;
  #pending: Pending[] = [];
  #pendingBytes = 0;
  #file: FileHandle | null = null;
  #writing: Promise<void> | null = null;
  #dirty = false;
  #lostInFile = 0;
  #problem: string | null = null;
  /** Records that were dropped before they were stored, since the start. */
  dropped = 0;

  private constructor(
    options: SpoolOptions,
    lock: SpoolLock,
    epochs: Epoch[],
    present: Epoch,
    start: Mono,
    alive: Wall | null,
  ) {
    this.#options = options;
    this.#lock = lock;
    this.epochs = epochs;
    this.#present = present;
    this.start = start;
    this.lastAlive = alive;
    this.#timers = [
      setInterval(() => void this.#signOfLife(), ALIVE_MS),
      setInterval(() => void this.#sweep(), SWEEP_MS),
    ];
    if (options.fsync > 0) this.#timers.push(setInterval(() => void this.#sync(), options.fsync / 1000));
  }

  /** Takes the lock, recovers what earlier lives left, and begins a new epoch. Throws SPOOL_UNUSABLE. */
  static async open(options: SpoolOptions, signal: AbortSignal): Promise<Spool> {
    try {
      await mkdir(join(options.dir, 'epochs'), { recursive: true });
    } catch (error) {
      throw unusable(error);
    }
    const waiting = () =>
      options.log.warn({ dir: options.dir }, 'another agent has the spool, waiting for it');
    const lock = await lockSpool(options.dir, waiting, signal);
    try {
      const alive = await readAlive(options.dir);
      const past = await recover(options);
      const { epoch, start } = await begin(options, past, alive?.life ?? 0);
      const spool = new Spool(options, lock, [...past, epoch], epoch, start, alive?.at ?? null);
      await spool.#signOfLife();
      return spool;
    } catch (error) {
      lock.release();
      throw error instanceof PlegwatchError ? error : unusable(error);
    }
  }

  get present(): Epoch {
    return this.#present;
  }

  get bytes(): number {
    return this.epochs.reduce((sum, epoch) => sum + epoch.bytes, 0) + this.#pendingBytes;
  }

  /** What keeps it from writing; null when all is well. */
  get problem(): string | null {
    return this.#problem;
  }

  /** From now on records are seen under these versions. */
  setContext(context: Omit<Context, 'no'>): void {
    this.#context = { no: (this.#context?.no ?? 0) + 1, ...context };
    this.#buffer({ is: 'context', seq: seq(this.#next), line: contextLine(this.#context) });
  }

  get context(): Context | null {
    return this.#context;
  }

  /** Takes a record in; it is written soon. A context must have been set. */
  append(record: EvidenceRecord, object: EvidenceObject | null): void {
    if (this.#context === null) throw new Error('a record before the first context');
    const at = seq(this.#next);
    this.#next += 1;
    this.#buffer({ is: 'record', seq: at, line: recordLine(at, record, object) });
    void this.flush();
  }

  /** The store has everything of an epoch up to the mark. */
  acknowledge(epoch: Epoch, mark: Seq): void {
    epoch.mark = mark;
  }

  /** Writes what waits. Never throws: what fails is tried again. */
  flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.flush();
    await this.#sync();
    await this.#signOfLife();
    await this.#file?.close();
    this.#lock.release();
  }

  #buffer(pending: Pending): void {
    this.#pending.push(pending);
    this.#pendingBytes += pending.line.length;
    while (this.#pendingBytes > BUFFER_BYTES) this.#dropPending();
  }

  #dropPending(): void {
    const gone = this.#pending.shift();
    if (gone === undefined) return;
    this.#pendingBytes -= gone.line.length;
    // Every segment begins with the present context anyway.
    if (gone.is === 'context') return;
    this.dropped += 1;
    this.#present.declare({ from: gone.seq, to: gone.seq, cause: 'spool_unwritable' });
    if (gone.seq > this.#present.written) this.#present.written = gone.seq;
  }

  async #writeAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      try {
        await this.#write(batch);
        this.#problem = null;
      } catch (error) {
        this.#pending = [...batch, ...this.#pending];
        await this.#failed(error);
        return;
      }
      this.onWritten();
    }
  }

  async #failed(error: unknown): Promise<void> {
    const first = this.#problem === null;
    this.#problem = messageOf(error);
    if (first) this.#options.log.error({ error: this.#problem }, 'the spool cannot be written');
    // The segment may end in half a line: what follows goes into a new one.
    await this.#closeFile();
    setTimeout(() => void this.flush(), 1_000).unref();
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    const first = batch[0];
    if (first === undefined) return;
    const last = batch.findLast((each) => each.is === 'record');
    const { handle, segment } = await this.#segment(first.seq);
    const text = batch.map((each) => each.line).join('');
    const { bytesWritten } = await handle.write(text);
    if (bytesWritten < Buffer.byteLength(text)) throw new Error('the disk took only a part of a write');
    if (this.#options.fsync === 0) await handle.datasync();
    segment.bytes += bytesWritten;
    segment.modified = Date.now();
    if (last !== undefined) segment.last = last.seq;
    this.#dirty = true;
    this.#pendingBytes -= text.length;
    this.#present.written = seq(Math.max(this.#present.written, segment.last));
    this.#present.forgetCache();
    if (segment.bytes >= SEGMENT_BYTES) await this.#closeFile();
  }

  /** The segment to write to; a new one begins with the present context. */
  async #segment(first: Seq): Promise<{ handle: FileHandle; segment: Segment }> {
    const current = this.#present.segments.at(-1);
    if (this.#file !== null && current !== undefined) return { handle: this.#file, segment: current };
    await this.#makeRoom();
    const file = `${String(first).padStart(10, '0')}-${randomUUID().slice(0, 8)}.seg`;
    const handle = await open(join(this.#present.dir, file), 'ax');
    const segment: Segment = { file, first, last: first - 1, bytes: 0, modified: Date.now() };
    this.#present.segments.push(segment);
    this.#file = handle;
    if (this.#context !== null)
      segment.bytes += (await handle.write(contextLine(this.#context))).bytesWritten;
    return { handle, segment };
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    if (file === null) return;
    try {
      await file.datasync();
      await file.close();
    } catch (error) {
      this.#options.log.error({ error: messageOf(error) }, 'a segment could not be brought to the disk');
    }
  }

  async #sync(): Promise<void> {
    if (!this.#dirty || this.#file === null) return;
    this.#dirty = false;
    try {
      await this.#file.datasync();
    } catch (error) {
      this.#dirty = true;
      this.#problem = messageOf(error);
    }
  }

  /** Deletes the oldest segments until there is room for another: acknowledged ones first. */
  async #makeRoom(): Promise<void> {
    const room = this.#options.maxBytes - SEGMENT_BYTES;
    while (this.bytes > room) {
      const acknowledged = this.epochs.find((epoch) => (epoch.segments[0]?.last ?? Infinity) <= epoch.mark);
      const victim = acknowledged ?? this.epochs.find((epoch) => epoch.segments.length > 0);
      if (victim === undefined) return;
      const lost = await victim.dropOldest('spool_full');
      this.dropped += lost;
      if (lost > 0)
        this.#options.log.warn({ records: lost }, 'the spool is full and dropped its oldest records');
    }
    await this.#keepLost();
  }

  /** Deletes acknowledged segments that are old, and epochs of which nothing is left. */
  async #sweep(): Promise<void> {
    try {
      const horizon = Date.now() - this.#options.keep / 1000;
      for (const epoch of [...this.epochs]) {
        let oldest = epoch.segments[0];
        const mayGo = () => oldest !== undefined && oldest.last <= epoch.mark && oldest.modified < horizon;
        while (mayGo() && !(epoch === this.#present && epoch.segments.length === 1)) {
          await epoch.dropOldest('none');
          oldest = epoch.segments[0];
        }
        if (epoch !== this.#present && epoch.segments.length === 0 && epoch.settled)
          await this.#forget(epoch);
      }
      await this.#keepLost();
    } catch (error) {
      this.#options.log.error({ error: messageOf(error) }, 'the spool could not be swept');
    }
  }

  async #forget(epoch: Epoch): Promise<void> {
    await rm(epoch.dir, { recursive: true, force: true });
    const at = this.epochs.indexOf(epoch);
    if (at !== -1) (this.epochs as Epoch[]).splice(at, 1);
  }

  /** Losses outlive a restart. */
  async #keepLost(): Promise<void> {
    const count = this.epochs.reduce((sum, epoch) => sum + epoch.lost.length, 0);
    if (count === this.#lostInFile) return;
    for (const epoch of this.epochs) await writeWhole(join(epoch.dir, 'lost.json'), epoch.lost);
    this.#lostInFile = count;
  }

  async #signOfLife(): Promise<void> {
    try {
      await writeWhole(join(this.#options.dir, 'alive'), { wall: wallNow(), life: this.#present.meta.life });
    } catch (error) {
      this.#problem = messageOf(error);
    }
  }
}

async function begin(
  options: SpoolOptions,
  past: readonly Epoch[],
  lastLife: number,
): Promise<{ epoch: Epoch; start: Mono }> {
  const last = past.at(-1)?.meta;
  const start = monoNow();
  const startedWall = wallNow();
  const previous = Math.max(last?.life ?? 0, lastLife);
  const meta: EpochMeta = {
    epoch: randomUUID(),
    life: previous === 0 ? Math.max(1, Math.floor(startedWall / 1e6) - LIVES_SINCE_S) : previous + 1,
    prev: last?.epoch ?? null,
    cluster: options.cluster,
    node: options.node,
    bootId: await bootId(),
    startedWall,
  };
  const dir = join(options.dir, 'epochs', `${String(meta.life).padStart(10, '0')}-${meta.epoch}`);
  await mkdir(dir);
  await writeWhole(join(dir, 'meta.json'), meta);
  return { epoch: new Epoch(meta, dir, [], []), start };
}

/** What earlier lives left, in the order of their lives. */
async function recover(options: SpoolOptions): Promise<Epoch[]> {
  const root = join(options.dir, 'epochs');
  const epochs: Epoch[] = [];
  for (const name of (await readdir(root)).sort()) {
    const epoch = await recoverEpoch(join(root, name), options);
    if (epoch !== null) epochs.push(epoch);
  }
  return epochs;
}

async function recoverEpoch(dir: string, options: SpoolOptions): Promise<Epoch | null> {
  const meta = (await readWhole(join(dir, 'meta.json'))) as EpochMeta | null;
  if (meta === null) {
    // It died before its first record: there is nothing to keep.
    await rm(dir, { recursive: true, force: true });
    return null;
  }
  if (meta.cluster !== options.cluster || meta.node !== options.node) {
    throw new PlegwatchError(
      'SPOOL_UNUSABLE',
      `The spool in ${options.dir} is of node ${meta.node} in cluster ${meta.cluster}.`,
      'Give this agent a folder of its own with --spool-dir (PLEGWATCH_SPOOL_DIR).',
    );
  }
  const lost = ((await readWhole(join(dir, 'lost.json'))) as Hole[] | null) ?? [];
  const { segments, holes } = await recoverSegments(dir, options.log);
  return new Epoch(
    meta,
    dir,
    segments,
    [...lost, ...holes].sort((a, b) => a.from - b.from),
  );
}

async function recoverSegments(dir: string, log: Logger): Promise<{ segments: Segment[]; holes: Hole[] }> {
  const segments: Segment[] = [];
  const holes: Hole[] = [];
  for (const file of (await readdir(dir)).filter((name) => name.endsWith('.seg')).sort()) {
    const path = join(dir, file);
    const { entries, whole } = readSegment(await readFile(path, 'utf8'));
    const { size, mtimeMs } = await stat(path);
    if (!whole) log.warn({ file, entries: entries.length }, 'a segment ends in what cannot be believed');
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    if (first === undefined || last === undefined) continue;
    const before = segments.at(-1);
    if (before !== undefined && first > before.last + 1) {
      holes.push({ from: before.last + 1, to: first - 1, cause: 'spool_corrupt' });
    }
    segments.push({ file, first, last, bytes: size, modified: mtimeMs });
  }
  return { segments, holes };
}

async function readAlive(dir: string): Promise<{ at: Wall; life: number } | null> {
  const alive = Object(await readWhole(join(dir, 'alive')));
  const at: unknown = Reflect.get(alive, 'wall');
  const life: unknown = Reflect.get(alive, 'life');
  if (!Number.isSafeInteger(at) || !Number.isSafeInteger(life)) return null;
  return { at: wall(Number(at)), life: Number(life) };
}

/** A small file as a whole, or null where it is not there or only half there. */
async function readWhole(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError || Reflect.get(Object(error), 'code') === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a small file so that it is there as a whole or not at all. */
async function writeWhole(file: string, value: unknown): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(value));
  await rename(`${file}.new`, file);
}

async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

function unusable(error: unknown): PlegwatchError {
  return new PlegwatchError(
    'SPOOL_UNUSABLE',
    `The spool folder cannot be used: ${messageOf(error)}.`,
    'Point --spool-dir (PLEGWATCH_SPOOL_DIR) at a folder on a local disk that the agent may write to.',
    { cause: error },
  );
}
