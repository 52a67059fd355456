/*
 * The spool: records on the node's own disk until the store has them.
 *
 *   <dir>/lock                                 held by the one agent of this node
 *   <dir>/heartbeat.json                       until when the node was observed
 *   <dir>/retired.json                         epochs that have no records left
 *   <dir>/epochs/<incarnation>-<epoch>/        one folder for each epoch: meta.json, lost.json, <first seq>-*.seg
 *
 *   append ──► buffer ──► write ──► may be sent ──► fsync, one for many writes
 *
 * It is bounded: over `maxBytes` the oldest segments are deleted, acknowledged ones first; unacknowledged records in them are
 * declared lost. A failed write is tried again in a new segment, and the buffer for it is bounded too. A disk that is over
 * 90 % full is not written to, because a kubelet evicts pods from it.
 *
 * An epoch is full long before its records have seqs or offsets that no column can hold.
 *
 * If the disk cannot be used, `fallback` decides: `refuse` fails at the start, and later keeps records in the buffer; `memory`
 * goes on in memory.
 */
import { openSync, writeSync } from 'node:fs';
import { messageOf } from '../../platform/errors.ts';
import { invariant } from '../../platform/invariant.ts';
import type { Logger } from '../../platform/log.ts';
import type { Context, Known } from '../../protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import { between, type Micros, type Mono, seq, wall } from '../../protocol/units.ts';
import { HEARTBEAT_MS, type LastObserved, writeHeartbeat } from './agentHeartbeat.ts';
import { type Epoch, EpochList } from './epoch.ts';
import { Eviction } from './eviction.ts';
import type { SpoolFiles } from './files.ts';
import type { SpoolLock } from './lock.ts';
import { Losses, writeReserve } from './losses.ts';
import type { MemoryFallback } from './memoryFallback.ts';
import { isEpochFull, type NewEpoch } from './newEpoch.ts';
import type { QuarantinedSpool } from './quarantine.ts';
import { RetiredEpochs } from './retiredEpochs.ts';
import { recordJson } from './segmentFormat.ts';
import { SegmentWriter } from './segmentWriter.ts';
import { SpoolWriter } from './spoolWriter.ts';
import { SpoolStatus } from './status.ts';
import { WriteBuffer } from './writeBuffer.ts';

export interface SpoolSettings {
  readonly dir: string;
  readonly maxBytes: number;
  /** The time from a write to the fsync; 0: every write is synced. */
  readonly fsyncInterval: Micros;
  readonly retention: Micros;
  /** How often acknowledged segments past their retention are deleted. */
  readonly sweepInterval: Micros;
  /** An epoch of this age is full. Default: {@link MAX_EPOCH_AGE}. */
  readonly maxEpochAge?: Micros;
  /** Every record is appended to this file before the spool gets it. */
  readonly auditFile?: string | undefined;
  readonly log: Logger;
}

export interface OpenedSpool {
  readonly files: SpoolFiles;
  /** Null if running from memory is not allowed. */
  readonly fallback: MemoryFallback | null;
  /** Null if it runs from memory since it was opened: then it stays there. */
  readonly lock: SpoolLock | null;
  readonly earlier: readonly Epoch[];
  readonly current: NewEpoch;
  readonly lastObserved: LastObserved | null;
  readonly quarantined: QuarantinedSpool | null;
}

/** {@link openSpool} opens one. */
export class Spool {
  /** The time that the offsets of the current epoch's records count from. */
  readonly start: Mono;
  /** The last moment that the agent before this one observed; null if there was none, or if it has recorded its own end. */
  readonly lastObserved: LastObserved | null;
  /** Another's spool that was in the folder; null if there was none. */
  readonly quarantined: QuarantinedSpool | null;
  readonly #settings: SpoolSettings & { readonly files: SpoolFiles };
  readonly #lock: SpoolLock | null;
  readonly #audit: number | null;
  readonly #epochs: EpochList;
  readonly #losses: Losses;
  readonly #eviction: Eviction;
  readonly #status: SpoolStatus;
  readonly #buffer: WriteBuffer;
  readonly #segments: SegmentWriter;
  readonly #writer: SpoolWriter;
  readonly #retired: RetiredEpochs;
  readonly #sweepTimer: NodeJS.Timeout;
  readonly #full = new AbortController();
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | null = null;
  #sweeping: Promise<void> | null = null;
  #context: Context | null = null;
  #known: (Known & { readonly last: number }) | null = null;
  #nextSeq = 1;

  constructor(settings: SpoolSettings, opened: OpenedSpool) {
    const { files, fallback, current } = opened;
    const options = { ...settings, files };
    this.start = current.start;
    this.lastObserved = opened.lastObserved;
    this.quarantined = opened.quarantined;
    this.#settings = options;
    this.#lock = opened.lock;
    this.#audit = settings.auditFile === undefined ? null : openSync(settings.auditFile, 'a');
    const epochs = new EpochList(opened.earlier, current.epoch);
    const status = new SpoolStatus(fallback);
    this.#epochs = epochs;
    this.#status = status;
    this.#losses = new Losses(options, epochs);
    const buffer = new WriteBuffer(current.epoch, this.#losses);
    this.#buffer = buffer;
    this.#eviction = new Eviction(options, fallback, epochs, this.#losses);
    const parts = { ...options, fallback, buffer };
    this.#segments = new SegmentWriter(parts, current.epoch, this.#eviction, status);
    this.#writer = new SpoolWriter({ ...parts, segments: this.#segments, status });
    this.#retired = new RetiredEpochs({ ...options, epochs });
    this.#sweepTimer = setInterval(() => {
      this.#sweeping ??= this.#sweep().finally(() => {
        this.#sweeping = null;
      });
    }, settings.sweepInterval / 1000);
  }

  /** All epochs, ordered by incarnation; the current one is the last. */
  get epochs(): readonly Epoch[] {
    return this.#epochs.all;
  }

  get current(): Epoch {
    return this.#epochs.current;
  }

  /** Aborted once the epoch should end, or the lock is gone: the spool must be opened again. Records can still be appended. */
  get full(): AbortSignal {
    return this.#full.signal;
  }

  get bytes(): number {
    return this.#epochs.bytes + this.#buffer.bytes;
  }

  /** The part of it that must not be deleted: segments with a record that is not acknowledged. */
  get unackedBytes(): number {
    const inSegments = this.epochs.reduce((sum, { unackedBytes }) => sum + unackedBytes, 0);
    return inSegments + this.#buffer.bytes;
  }

  /** How many records are not acknowledged, with those that wait to be written. */
  get unackedRecords(): number {
    const written = this.epochs.reduce(
      (sum, { lastSeq, ackedSeq }) => sum + Math.max(0, lastSeq - ackedSeq),
      0,
    );
    return written + this.#nextSeq - 1 - this.current.lastSeq;
  }

  get error(): string | null {
    return this.#status.error;
  }

  /** Whether records that are written now are gone when the process ends. */
  get isInMemory(): boolean {
    return this.#status.isInMemory;
  }

  /** How many records were lost before they were acknowledged, since the start. Never falls, also when their epoch is removed. */
  get dropped(): number {
    return this.#losses.dropped + this.#epochs.unreadable;
  }

  get context(): Context | null {
    return this.#context;
  }

  /** The facts that the observer knows without a record, as far as all records of this epoch up to `last` say the rest; null before it said so. */
  get known(): (Known & { readonly last: number }) | null {
    return this.#known;
  }

  setKnown(known: Known): void {
    this.#known = { ...known, last: this.#nextSeq - 1 };
  }

  setContext(context: Omit<Context, 'no'>): void {
    this.#context = { no: (this.#context?.no ?? 0) + 1, ...context };
    this.current.addContext(this.#context);
  }

  /** Appends a record, which is written soon. Throws before the first context. */
  append(record: EvidenceRecord, object: ContainerIdentity | null): void {
    invariant(this.#context !== null, 'a record before the first context');
    const at = seq(this.#nextSeq);
    this.#nextSeq += 1;
    const json = recordJson(at, this.#context.no, record, object);
    if (this.#audit !== null) writeSync(this.#audit, `${this.current.meta.epoch} ${json}\n`);
    this.#buffer.push({ seq: at, json, context: this.#context });
    this.#writer.writeSoon();
  }

  onWritten(listener: () => void): void {
    this.#writer.onWritten(listener);
  }

  /** Writes what is in the buffer. Never throws: what fails is tried again. */
  flush(): Promise<void> {
    return this.#writer.flush();
  }

  /**
   * Writes a heartbeat, and from then on one every 10 s. To be called once everything that is known of the time before this agent was
   * appended. `observedUntil` returns a moment up to which every record was appended.
   */
  async startHeartbeat(observedUntil: () => Mono): Promise<void> {
    const beat = () => {
      if (this.#isFull(observedUntil())) this.#full.abort();
      if (this.#lock?.isHeld() === false) this.#full.abort();
      // On a slow disk the one before may still be under way, in the same file.
      this.#beating ??= this.#writeHeartbeat(observedUntil(), false).finally(() => {
        this.#beating = null;
      });
      return this.#beating;
    };
    this.#heartbeatTimer = setInterval(() => void beat(), HEARTBEAT_MS);
    await beat();
  }

  /** Writes the last heartbeat: the agent has recorded its own end. */
  async stopHeartbeat(observedUntil: Mono): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    await this.#beating;
    await this.#writeHeartbeat(observedUntil, true);
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    clearInterval(this.#sweepTimer);
    // The next holder of the lock must not find a sweep or a heartbeat under way.
    await this.#sweeping;
    await this.#beating;
    await this.#writer.close();
    await this.#losses.trySave();
    this.#lock?.release();
  }

  #isFull(now: Mono): boolean {
    return isEpochFull(
      { records: this.#nextSeq - 1, contexts: this.#context?.no ?? 0, age: between(this.start, now) },
      this.#settings.maxEpochAge,
    );
  }

  async #sweep(): Promise<void> {
    const { files, dir, log } = this.#settings;
    try {
      await this.#returnToDisk();
      if (!this.isInMemory) await writeReserve(files, dir);
      // In memory the list of retired epochs would be gone with the process.
      await this.#retired.sweep(() => !this.isInMemory);
      await this.#losses.save();
    } catch (error) {
      log.error({ error: messageOf(error) }, 'spool sweep failed');
    }
  }

  async #returnToDisk(): Promise<void> {
    if (this.#lock === null || !(await this.#eviction.returnToDisk())) return;
    this.#status.succeeded();
    this.#settings.log.info('spool is on disk again');
  }

  /** Writes nothing if a record that was appended before is not on the disk: the older heartbeat still holds then. */
  async #writeHeartbeat(at: Mono, hasStopped: boolean): Promise<void> {
    const { files, dir } = this.#settings;
    const { incarnation, bootId, startedWall } = this.current.meta;
    const last = this.#nextSeq - 1;
    try {
      await this.flush();
      if (this.current.lastSeq < last || !(await this.#segments.sync())) return;
      const label = wall(startedWall + between(this.start, at));
      const lastSeq = last;
      await writeHeartbeat(files, dir, { mono: at, wall: label, bootId, incarnation, lastSeq, hasStopped });
    } catch (error) {
      this.#status.failed(messageOf(error));
    }
  }
}
