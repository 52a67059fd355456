/*
 * The spool: records on the node's own disk until the store has them.
 *
 *   <dir>/lock                         held by the one agent of this node
 *   <dir>/alive                        a sign of life, every 10 s: from here "agent down" begins
 *   <dir>/past.json                    what is remembered of epochs of which no record is left
 *   <dir>/epochs/<life>-<epoch>/       one folder a life: meta.json, lost.json, <first seq>.seg
 *
 * append ──► buffer ──► write ──► may be shipped ──► fsync, together with what else was written meanwhile
 *
 * Bounded: over `maxBytes` the oldest segments go, acknowledged ones first; what had not been acknowledged is declared.
 * A write that fails is tried again in a new segment; what waits for it is bounded too. A disk that is over 90 % full is not
 * written to: pods are evicted from it, and others' data matters more.
 *
 * Where the disk cannot be used, or not any more, `fallback` decides: `refuse` ends the agent at its start and later waits,
 * with records in the buffer; `memory` goes on in memory, and says so.
 */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { wallNow } from '../../platform/clock.ts';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { Context } from '../../protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import { type Micros, type Mono, type Seq, seq, type Wall } from '../../protocol/units.ts';
import { AGENT_INTERNALS } from '../internalSettings.ts';
import { type Audit, openAudit } from './audit.ts';
import type { Epoch, Segment } from './epoch.ts';
import { Room } from './eviction.ts';
import { type Files, MACHINE_FILES, type OpenFile, syncFolder, writeAll, writeWhole } from './files.ts';
import { lockSpool, type SpoolLock } from './lock.ts';
import { Losses } from './losses.ts';
import { machineId } from './machine.ts';
import { Refuge } from './memoryFallback.ts';
import { begin } from './newEpoch.ts';
import { quarantine, type SetAside } from './quarantine.ts';
import { readAlive, recover } from './recovery.ts';
import { layReserve } from './reserve.ts';
import { forgetOldest, readPast, retire } from './retiredEpochs.ts';
import { contextLine, recordLine, SEGMENT_BYTES } from './segment.ts';
import { type Pending, Waiting } from './writeBuffer.ts';

export interface SpoolOptions {
  readonly dir: string;
  readonly cluster: string;
  readonly node: string;
  readonly maxBytes: number;
  /** How long written records may wait for the disk; 0 = every write. */
  readonly fsync: Micros;
  /** How long acknowledged segments stay. */
  readonly keep: Micros;
  /** How often acknowledged segments past their retention are deleted. Default: that of the settings. */
  readonly sweepInterval?: Micros;
  /** Every record is appended to this file before the spool gets it. */
  readonly auditFile?: string | undefined;
  /** What to do where the disk cannot be used. Default: refuse. */
  readonly fallback?: 'refuse' | 'memory';
  readonly log: Logger;
  /** Default: those of the machine. */
  readonly files?: Files;
  /** Default: what this machine says it is. */
  readonly machine?: string;
}

/** What was given, with defaults. */
type OpenOptions = SpoolOptions & Required<Omit<SpoolOptions, 'auditFile'>>;

const ALIVE_MS = 10_000;

export class Spool {
  /** The position on the monotonic clock that the present epoch's offsets count from. */
  readonly start: Mono;
  /** The last sign of life of the agent before this one, by the wall clock; null on a new spool. */
  readonly lastAlive: Wall | null;
  /** What was found here of somebody else's, and moved aside. */
  setAside: SetAside | null = null;
  /** Called after every write, so that shipping need not ask. */
  onWritten: () => void = () => undefined;
  readonly #options: OpenOptions;
  readonly #refuge: Refuge | null;
  readonly #epochs: Epoch[];
  readonly #losses: Losses;
  readonly #room: Room;
  /** Null where it has been in memory from the start: then it stays there. */
  readonly #lock: SpoolLock | null;
  readonly #present: Epoch;
  readonly #waiting: Waiting;
  readonly #audit: Audit;
  readonly #timers: NodeJS.Timeout[];
  #context: Context | null = null;
  #next = 1;
  #file: OpenFile | null = null;
  #writing: Promise<void> | null = null;
  #sweeping: Promise<void> | null = null;
  #dirty = false;
  #syncTimer: NodeJS.Timeout | undefined;
  #closed = false;
  #problem: string | null = null;

  private constructor(
    options: OpenOptions,
    refuge: Refuge | null,
    lock: SpoolLock | null,
    epochs: Epoch[],
    present: Epoch,
    start: Mono,
    alive: Wall | null,
  ) {
    this.#options = options;
    this.#audit = openAudit(options.auditFile);
    this.#refuge = refuge;
    this.#lock = lock;
    this.#epochs = epochs;
    this.#losses = new Losses(options, epochs);
    this.#room = new Room(options, refuge, epochs, this.#losses);
    this.#present = present;
    this.#waiting = new Waiting(present, this.#losses);
    this.start = start;
    this.lastAlive = alive;
    this.#timers = [
      setInterval(() => void this.#signOfLife(), ALIVE_MS),
      setInterval(() => {
        this.#sweeping ??= this.#sweep().finally(() => {
          this.#sweeping = null;
        });
      }, options.sweepInterval / 1000),
    ];
  }

  /** Takes the lock, recovers what earlier lives left, and begins a new epoch. Throws SPOOL_UNUSABLE. */
  static async open(given: SpoolOptions, signal: AbortSignal): Promise<Spool> {
    const { fallback = 'refuse', files = MACHINE_FILES } = given;
    const refuge = fallback === 'memory' ? new Refuge(files) : null;
    const machine = given.machine ?? (await machineId());
    const { sweepInterval = AGENT_INTERNALS.intervalSpoolSweep.read(undefined) } = given;
    const options = { ...given, fallback, machine, sweepInterval, files: refuge ?? files };
    try {
      return await Spool.#openOn(options, refuge, signal);
    } catch (error) {
      if (refuge === null || signal.aborted) throw error;
      options.log.error({ error: messageOf(error) }, 'the spool cannot be used, the agent runs from memory');
      refuge.flee(messageOf(error));
      // There is nobody to share it with.
      const { epoch, start } = await begin(options, [], 0);
      return new Spool(options, refuge, null, [epoch], epoch, start, null);
    }
  }

  static async #openOn(options: OpenOptions, refuge: Refuge | null, signal: AbortSignal): Promise<Spool> {
    try {
      await options.files.makeFolder(join(options.dir, 'epochs'));
      await syncFolder(options.files, options.dir);
    } catch (error) {
      throw unusable(error);
    }
    const waiting = () =>
      options.log.warn({ dir: options.dir }, 'another agent has the spool, waiting for it');
    const lock = await lockSpool(options.dir, waiting, signal);
    try {
      const setAside = await quarantine(options);
      const alive = await readAlive(options.files, options.dir);
      const there = await recover(options);
      const past = [...(await readPast(options.files, options.dir, there)), ...there].sort(
        (a, b) => a.meta.life - b.meta.life,
      );
      const { epoch, start } = await begin(options, past, alive?.life ?? 0);
      await layReserve(options.files, options.dir);
      const spool = new Spool(options, refuge, lock, [...past, epoch], epoch, start, alive?.at ?? null);
      spool.setAside = setAside;
      await spool.#signOfLife();
      return spool;
    } catch (error) {
      lock.release();
      throw error instanceof PlegwatchError ? error : unusable(error);
    }
  }

  get #files(): Files {
    return this.#options.files;
  }

  get epochs(): readonly Epoch[] {
    return this.#epochs;
  }

  get present(): Epoch {
    return this.#present;
  }

  get bytes(): number {
    return this.epochs.reduce((sum, epoch) => sum + epoch.bytes, 0) + this.#waiting.bytes;
  }

  /** What keeps it from writing; null when all is well. */
  get problem(): string | null {
    const reason = this.#refuge?.reason ?? null;
    return reason === null ? this.#problem : `runs from memory: ${reason}`;
  }

  /** Whether what is written now would not outlive the process. */
  get inMemory(): boolean {
    return this.#refuge !== null && this.#refuge.reason !== null;
  }

  /** Records that were dropped before they were stored, since the start. */
  get dropped(): number {
    return this.#losses.dropped;
  }

  /** From now on records are seen under these versions. */
  setContext(context: Omit<Context, 'no'>): void {
    this.#context = { no: (this.#context?.no ?? 0) + 1, ...context };
    this.#waiting.push({ is: 'context', seq: seq(this.#next), line: contextLine(this.#context) });
  }

  get context(): Context | null {
    return this.#context;
  }

  /** Takes a record in; it is written soon. A context must have been set. */
  append(record: EvidenceRecord, object: ContainerIdentity | null): void {
    if (this.#context === null) throw new Error('a record before the first context');
    const at = seq(this.#next);
    this.#next += 1;
    const line = recordLine(at, record, object);
    this.#audit(this.#present.meta.epoch, line);
    this.#waiting.push({ is: 'record', seq: at, line });
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
    // Whoever takes the lock next must not find it at work.
    await this.#sweeping;
    await this.flush();
    this.#closed = true;
    await this.#sync();
    await this.#signOfLife();
    await this.#losses.tellLost();
    await this.#file?.close();
    this.#lock?.release();
  }

  async #writeAll(): Promise<void> {
    while (!this.#waiting.isEmpty && !this.#closed) {
      const batch = this.#waiting.take();
      try {
        await this.#write(batch);
        this.#waiting.landed();
        this.#problem = null;
      } catch (error) {
        this.#waiting.putBack(batch);
        if (!(await this.#failed(error))) return;
      }
      this.onWritten();
    }
  }

  /** Whether it may be tried again at once: in memory. */
  async #failed(error: unknown): Promise<boolean> {
    const first = this.#problem === null;
    this.#problem = messageOf(error);
    if (first) this.#options.log.error({ error: this.#problem }, 'the spool cannot be written');
    // The segment may end in half a line: what follows goes into a new one.
    await this.#closeFile();
    await this.#removeEmpty();
    if (this.#refuge !== null && !this.inMemory) {
      this.#refuge.flee(this.#problem);
      this.#options.log.error({ error: this.#problem }, 'the agent runs from memory');
      return true;
    }
    setTimeout(() => void this.flush(), 1_000).unref();
    return false;
  }

  /** A disk that is full still lets files be made: those that took nothing would pile up. */
  async #removeEmpty(): Promise<void> {
    const segment = this.#present.segments.at(-1);
    if (segment === undefined || segment.last >= segment.first) return;
    this.#present.segments.pop();
    await this.#files.remove(join(this.#present.dir, segment.file)).catch((error: unknown) => {
      this.#options.log.error({ error: messageOf(error) }, 'an empty segment could not be removed');
    });
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    const first = batch[0];
    if (first === undefined) return;
    const last = batch.findLast((each) => each.is === 'record');
    if (!this.inMemory) await this.#room.leaveToOthers(this.#openSegment);
    const { handle, segment } = await this.#segment(first.seq);
    const text = batch.map((each) => each.line).join('');
    const bytesWritten = await writeAll(handle, text);
    if (this.#options.fsync === 0) await handle.datasync();
    segment.bytes += bytesWritten;
    segment.modified = Date.now();
    if (last !== undefined) segment.last = last.seq;
    this.#dirty = true;
    this.#syncSoon();
    this.#waiting.wrote(text.length);
    this.#present.written = seq(Math.max(this.#present.written, segment.last));
    if (segment.bytes >= SEGMENT_BYTES) await this.#closeFile();
  }

  /** The segment to write to; a new one begins with the present context. */
  async #segment(first: Seq): Promise<{ handle: OpenFile; segment: Segment }> {
    const current = this.#present.segments.at(-1);
    if (this.#file !== null && current !== undefined && !this.#isMisplaced(current))
      return { handle: this.#file, segment: current };
    await this.#closeFile();
    await this.#room.make(() => this.bytes);
    const file = `${String(first).padStart(10, '0')}-${randomUUID().slice(0, 8)}.seg`;
    const handle = await this.#files.open(join(this.#present.dir, file), 'ax');
    await syncFolder(this.#files, this.#present.dir);
    const segment: Segment = { file, first, last: first - 1, bytes: 0, modified: Date.now() };
    this.#present.segments.push(segment);
    this.#file = handle;
    if (this.#context !== null) segment.bytes += await writeAll(handle, contextLine(this.#context));
    return { handle, segment };
  }

  /** The segment that is being written. */
  get #openSegment(): Segment | undefined {
    return this.#file === null ? undefined : this.#present.segments.at(-1);
  }

  /** Whether it lies in memory and should not, or the other way round. */
  #isMisplaced(segment: Segment): boolean {
    return (this.#refuge?.holds(join(this.#present.dir, segment.file)) ?? false) !== this.inMemory;
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

  /** One fsync for what is written from now until then; nothing is timed while nothing is written. */
  #syncSoon(): void {
    const { fsync } = this.#options;
    if (fsync > 0) this.#syncTimer ??= setTimeout(() => void this.#sync(), fsync / 1000);
  }

  async #sync(): Promise<void> {
    clearTimeout(this.#syncTimer);
    this.#syncTimer = undefined;
    if (!this.#dirty || this.#file === null) return;
    this.#dirty = false;
    try {
      await this.#file.datasync();
    } catch (error) {
      this.#dirty = true;
      this.#problem = messageOf(error);
      if (!this.#closed) this.#syncSoon();
    }
  }

  /** Deletes acknowledged segments that are old. An epoch goes into the past before the last one of it goes. */
  async #sweep(): Promise<void> {
    try {
      await this.#tryDisk();
      if (!this.inMemory) await layReserve(this.#files, this.#options.dir);
      const horizon = Date.now() - this.#options.keep / 1000;
      for (const epoch of [...this.epochs]) {
        let oldest = epoch.segments[0];
        const mayGo = () => oldest !== undefined && oldest.last <= epoch.mark && oldest.modified < horizon;
        while (mayGo() && epoch.segments.length > 1) {
          await epoch.dropOldest('none');
          oldest = epoch.segments[0];
        }
        const over = epoch.segments.length === 0 || mayGo();
        // Not while in memory: what tells of it would be there, and gone with the process.
        if (epoch !== this.#present && epoch.retired === null && epoch.settled && over && !this.inMemory)
          await retire(this.#files, this.#options.dir, this.#epochs, epoch);
      }
      await forgetOldest(this.#files, this.#options.dir, this.#epochs);
      await this.#losses.keep();
    } catch (error) {
      this.#options.log.error({ error: messageOf(error) }, 'the spool could not be swept');
    }
  }

  /** Goes back to a disk that takes a file again. */
  async #tryDisk(): Promise<void> {
    if (this.#lock === null || !(await this.#room.goBack())) return;
    this.#problem = null;
    this.#options.log.info('the spool is on the disk again');
  }

  async #signOfLife(): Promise<void> {
    try {
      await writeWhole(this.#files, join(this.#options.dir, 'alive'), {
        wall: wallNow(),
        life: this.#present.meta.life,
      });
    } catch (error) {
      this.#problem = messageOf(error);
    }
  }
}

function unusable(error: unknown): PlegwatchError {
  return new PlegwatchError(
    'SPOOL_UNUSABLE',
    `The spool folder cannot be used: ${messageOf(error)}.`,
    'Point --spool-dir (PLEGWATCH_SPOOL_DIR) at a folder on a local disk that the agent may write to.',
    { cause: error },
  );
}
