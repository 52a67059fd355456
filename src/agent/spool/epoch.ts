/*
 * An epoch of the spool: the records of one incarnation of the agent, in a folder of segments. SPEC.md has the table of its
 * transitions.
 *
 *   last seq     records up to here are written (not necessarily synced), or declared lost
 *   acked seq    records up to here are acknowledged; only these may be deleted without a loss
 *   lost         ranges of seqs that were dropped, with the cause; the envelope of every batch declares them
 *   retired      every record was acknowledged and deleted: only the epoch itself is remembered (retiredEpochs.ts)
 *
 * Records are appended to the current epoch only.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import type { Context } from '../../protocol/batch.ts';
import { type Seq, seq } from '../../protocol/units.ts';
import { int4, uuid } from '../../protocol/validation.ts';
import type { SpoolFiles } from './files.ts';
import { type LostRange, LostRanges } from './lostRanges.ts';
import { type Segment, SegmentReader } from './segment.ts';
import type { Contexts, SpoolEntry } from './segmentFormat.ts';

/** The content of meta.json of an epoch. */
export const EpochMetaSchema = v.object({
  epoch: uuid,
  incarnation: int4,
  prev: v.nullable(uuid),
  cluster: v.string(),
  node: v.string(),
  bootId: v.string(),
  /** See {@link machineId}. */
  machine: v.string(),
  /** The wall clock at the epoch's start, in microseconds since the Unix epoch. */
  startedWall: v.pipe(v.number(), v.safeInteger()),
  /** The same moment on the monotonic clock of its boot. */
  startedMono: v.pipe(v.number(), v.safeInteger()),
});
export type EpochMeta = Readonly<v.InferOutput<typeof EpochMetaSchema>>;

export interface Retirement {
  /** The wall clock, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** The context of its oldest record then; null if that could not be read. */
  readonly context: Context | null;
}

/** The content that an epoch begins with, or what was recovered of it. */
export interface EpochContent {
  readonly meta: EpochMeta;
  readonly dir: string;
  readonly segments?: readonly Segment[];
  /** Those that were found in the segments. */
  readonly contexts?: Contexts;
  readonly lost?: readonly LostRange[];
  /** How far it is known to have gone, when that is further than its segments. */
  readonly lastSeq?: number;
  readonly lastEvent?: number;
  readonly hasStopped?: boolean;
}

export class Epoch {
  readonly meta: EpochMeta;
  readonly dir: string;
  /** When the last event that was recovered was received: microseconds since the epoch's start, 0 if there is none. */
  readonly lastEvent: number;
  /** Whether its agent recorded that it stopped. */
  readonly hasStopped: boolean;
  readonly #files: SpoolFiles;
  readonly #contexts: Contexts;
  readonly #reader: SegmentReader;
  #segments: Segment[];
  readonly #lost: LostRanges;
  #lastSeq: Seq;
  #ackedSeq: Seq = seq(0);
  #retirement: Retirement | null = null;
  #unreadable = 0;

  constructor(files: SpoolFiles, content: EpochContent) {
    const { meta, dir, segments = [], lastSeq = 0 } = content;
    this.#files = files;
    this.#contexts = content.contexts ?? new Map();
    this.#reader = new SegmentReader(files, dir, this.#contexts);
    this.meta = meta;
    this.dir = dir;
    this.lastEvent = content.lastEvent ?? 0;
    this.hasStopped = content.hasStopped ?? false;
    this.#segments = [...segments];
    this.#lost = new LostRanges(content.lost);
    this.#lastSeq = seq(Math.max(lastSeq, this.#lost.last, ...segments.map(({ last }) => last)));
  }

  /** Oldest first. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get lost(): readonly LostRange[] {
    return this.#lost.declared;
  }

  get lastSeq(): Seq {
    return this.#lastSeq;
  }

  get ackedSeq(): Seq {
    return this.#ackedSeq;
  }

  /** The lowest seq that can still be read; one more than the last if there is none. */
  get oldestSeq(): Seq {
    return seq(this.#segments[0]?.first ?? this.#lastSeq + 1);
  }

  /** How many records this process declared lost because it could not read them. */
  get unreadable(): number {
    return this.#unreadable;
  }

  get retirement(): Retirement | null {
    return this.#retirement;
  }

  get isAcknowledged(): boolean {
    return this.#ackedSeq >= this.#lastSeq;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** The size of the segments with a record that is not acknowledged. */
  get unackedBytes(): number {
    return this.#segments.reduce((sum, { last, bytes }) => sum + (last > this.#ackedSeq ? bytes : 0), 0);
  }

  /** Whether a segment can be deleted without a loss. One whose end is unknown may contain more than the store has. */
  hasAcknowledged({ last, isEndUnknown }: Segment): boolean {
    return last <= this.#ackedSeq && isEndUnknown !== true;
  }

  /** Sets the acked seq. It may go back: a restored store knows less than before. */
  acknowledge(upTo: Seq): void {
    this.#ackedSeq = upTo;
    this.#reader.release(upTo);
  }

  /** Notes that records up to this one are written, or were dropped. */
  advanceTo(last: number): void {
    this.#lastSeq = seq(Math.max(this.#lastSeq, last));
  }

  /** Only remembers the epoch from now on: every record of it was acknowledged. */
  retire(retirement: Retirement): void {
    this.#retirement = retirement;
    this.#ackedSeq = this.#lastSeq;
  }

  /** Forgets all segments, whose files the caller removes. */
  releaseSegments(): void {
    this.#segments = [];
    this.#reader.forgetCache();
  }

  /** Notes a context that its records refer to: the part of a segment that contains it may become unreadable. */
  addContext(context: Context): void {
    this.#contexts.set(context.no, context);
  }

  addSegment(segment: Segment): void {
    this.#segments.push(segment);
  }

  /** Removes the newest segment if it contains no record. Throws if its file cannot be removed. */
  async removeEmptySegment(): Promise<void> {
    const newest = this.#segments.at(-1);
    if (newest !== undefined && newest.last < newest.first) await this.removeSegment(newest);
  }

  /** Removes a segment whose records are elsewhere. Throws if its file cannot be removed. */
  async removeSegment(segment: Segment): Promise<void> {
    const at = this.#segments.indexOf(segment);
    if (at !== -1) this.#segments.splice(at, 1);
    await this.#files.remove(join(this.dir, segment.file));
  }

  /**
   * Reads consecutive entries of one context from a seq on, up to the limits, but at least one if there is any. If `from`
   * is lost, they begin after the lost range.
   */
  async read(from: number, maxRecords: number, maxBytes: number): Promise<SpoolEntry[]> {
    const taken: SpoolEntry[] = [];
    let bytes = 0;
    // A copy: when a segment is dropped meanwhile, the next one must not be skipped.
    const segments = this.#segments.filter(({ last, isEndUnknown }) => last >= from || isEndUnknown === true);
    for (const segment of segments) {
      for (const entry of await this.#entriesOf(segment, from)) {
        if (entry.seq < from || !this.#isValid(segment, entry.seq)) continue;
        const last = taken.at(-1);
        bytes += entry.bytes;
        if (
          taken.length >= maxRecords ||
          (last !== undefined && !(follows(last, entry) && bytes <= maxBytes))
        ) {
          return taken;
        }
        taken.push(entry);
      }
    }
    return taken;
  }

  /** Reads a segment again whose end is unknown. After some tries in vain it ends where it can be read. */
  async findEnd(): Promise<void> {
    for (const segment of this.#segments.filter(({ isEndUnknown }) => isEndUnknown === true))
      await this.#entriesOf(segment, segment.first);
  }

  forgetCache(): void {
    this.#reader.forgetCache();
  }

  /** The part of a segment that would be lost with it; null if all of it is acknowledged, or lost already. */
  lossOf({ first, last }: Segment, cause: string): LostRange | null {
    const from = Math.max(first, this.#ackedSeq + 1);
    return this.isDeclaredLost(from, last) ? null : { from, to: last, cause };
  }

  /** Deletes a segment and declares lost what of it was not acknowledged. Returns the number of lost records. */
  async drop(segment: Segment, cause: string): Promise<number> {
    const at = this.#segments.indexOf(segment);
    if (at === -1) return 0;
    this.#segments.splice(at, 1);
    const loss = this.lossOf(segment, cause);
    if (loss !== null) this.declareLost(loss);
    try {
      await this.#files.remove(join(this.dir, segment.file));
    } catch (error) {
      // It still takes up space.
      this.#segments = [...this.#segments, segment].sort((a, b) => a.first - b.first);
      throw error;
    }
    return loss === null ? 0 : loss.to - loss.from + 1;
  }

  declareLost(range: LostRange): void {
    this.#lost.add(range);
  }

  declareUnreadable(from: number, to: number): void {
    this.#unreadable += to - from + 1;
    this.declareLost({ from, to, cause: 'spool_unreadable' });
  }

  /** Whether every seq of a range is declared lost. True for an empty range. */
  isDeclaredLost(from: number, to: number): boolean {
    return this.#lost.include(from, to);
  }

  async #entriesOf(segment: Segment, from: number): Promise<readonly SpoolEntry[]> {
    // Records that are written during the read are no part of it.
    const { first, last } = segment;
    const { entries, damaged } = await this.#reader.entriesOf(segment, from);
    if (segment.isEndUnknown === true) {
      segment.last = Math.max(segment.last, entries.at(-1)?.seq ?? 0);
      segment.isEndUnknown = damaged === 'perhaps';
      this.advanceTo(segment.last);
    }
    if (damaged === 'yes') this.#declareUnreadable(segment, { from: first, to: last }, entries);
    return entries;
  }

  /** Declares lost what a damaged segment should contain, and neither its readable entries nor another segment do. */
  #declareUnreadable(
    damaged: Segment,
    { from, to }: Pick<LostRange, 'from' | 'to'>,
    entries: readonly SpoolEntry[],
  ): void {
    const others = this.#segments.filter((each) => each !== damaged);
    const readable = new Set(entries.map((entry) => entry.seq as number));
    for (let at = Math.max(from, this.#ackedSeq + 1); at <= to; at += 1) {
      const isElsewhere = others.some(({ first, last }) => at >= first && at <= last);
      if (!readable.has(at) && !isElsewhere && !this.isDeclaredLost(at, at)) this.declareUnreadable(at, at);
    }
  }

  /** A failed write may leave records in a segment that were later written again, or dropped: these are not valid. */
  #isValid(segment: Segment, at: Seq): boolean {
    return at <= segment.last && !this.#lost.include(at, at);
  }
}

function follows(last: SpoolEntry, next: SpoolEntry): boolean {
  return next.seq === last.seq + 1 && next.context.no === last.context.no;
}

/** The epochs of a spool, ordered by incarnation. */
export class EpochList {
  readonly current: Epoch;
  readonly #epochs: Epoch[];
  /** Unreadable records of epochs that were removed. */
  #unreadable = 0;

  constructor(earlier: readonly Epoch[], current: Epoch) {
    this.current = current;
    this.#epochs = [...earlier, current];
  }

  get all(): readonly Epoch[] {
    return this.#epochs;
  }

  get bytes(): number {
    return this.#epochs.reduce((sum, epoch) => sum + epoch.bytes, 0);
  }

  /** How many records could not be read since the start, those of removed epochs included. */
  get unreadable(): number {
    return this.#epochs.reduce((sum, epoch) => sum + epoch.unreadable, this.#unreadable);
  }

  remove(epoch: Epoch): void {
    const at = this.#epochs.indexOf(epoch);
    if (at === -1) return;
    this.#epochs.splice(at, 1);
    this.#unreadable += epoch.unreadable;
  }
}
