/*
 * Decides, before anything touches the database, which new records of a batch can be stored. Pure.
 *
 *   storable     a record with its seq and its time on the wall clock (start of the epoch + offset)
 *   unstorable   malformed, with an absurd time, or past its retention: becomes a gap
 *
 * Times are microseconds since 1970, days are whole days since 1970 in UTC.
 */
import type { Envelope } from '../../protocol/batch.ts';
import { type EvidenceRecord, parseRecord, type RecordOf, type RecordType } from '../../protocol/record.ts';
import { DAYS_AHEAD, dayOf } from '../../store/partitions.ts';
import type { StoreSettings } from '../../store/store.ts';
import { isFrequentRecord } from './frequentRecords.ts';
import { type SeqRange, seqsOf } from './seqRanges.ts';

export interface StorableRecord<T extends RecordType = RecordType> {
  readonly seq: number;
  readonly at: number;
  readonly record: RecordOf<T>;
}

export interface UnstorableRecord {
  readonly seq: number;
  readonly cause: 'unreadable' | 'absurd_time' | 'expired' | 'refused_by_database' | 'timed_out';
  readonly error: string;
  /** The record that arrived, as JSON; null if the record itself is fine. */
  readonly bytes: string | null;
}

export interface ValidatedRecords {
  readonly storable: StorableRecord[];
  readonly unstorable: UnstorableRecord[];
}

/** The bounds of the days that can be stored. */
export interface StorableDays extends Pick<StoreSettings, 'eventRetentionDays' | 'findingRetentionDays'> {
  readonly today: number;
}

const MAX_BYTES = 16_384;
const INT8_MAX = 2n ** 63n - 1n;
/** Types whose partitions are days; the others are kept for `findingRetentionDays`. */
const DAILY: ReadonlySet<RecordType> = new Set(['container_event', 'relist_change', 'relist_minute']);

/** Validates the records of these seqs. `epochStart` is the wall-clock time of the epoch's start. */
export function validateRecords(
  envelope: Envelope,
  fresh: readonly SeqRange[],
  epochStart: number,
  days: StorableDays,
): ValidatedRecords {
  const storable: StorableRecord[] = [];
  const unstorable: UnstorableRecord[] = [];
  for (const seq of seqsOf(fresh)) {
    const input = envelope.records[seq - envelope.first];
    const parsed = isFrequentRecord(input) ? { ok: true as const, value: input } : parseRecord(input);
    const error = parsed.ok ? outOfBounds(parsed.value) : parsed.error;
    if (!parsed.ok || error !== null) {
      unstorable.push({ seq, cause: 'unreadable', error: error ?? '', bytes: inputBytes(input) });
      continue;
    }
    const record = parsed.value;
    const at = epochStart + record.t;
    const cause = timeFault(record, at, epochStart, days);
    if (cause === null) storable.push({ seq, at, record });
    else {
      const bytes = cause === 'expired' ? null : inputBytes(input);
      unstorable.push({ seq, cause, error: `t: ${new Date(at / 1000).toISOString()}`, bytes });
    }
  }
  return { storable, unstorable };
}

/** A record that passed every check and that the database refuses. */
export function refusedByDatabase({ seq, record }: StorableRecord, error: string): UnstorableRecord {
  return { seq, cause: 'refused_by_database', error, bytes: inputBytes(record) };
}

/** A record of a batch whose statements timed out twice while other batches were stored. */
export function timedOut({ seq, record }: StorableRecord): UnstorableRecord {
  return {
    seq,
    cause: 'timed_out',
    error: 'a statement of its batch timed out twice',
    bytes: inputBytes(record),
  };
}

export function ofType<T extends RecordType>(
  records: readonly StorableRecord[],
  type: T,
): StorableRecord<T>[] {
  const found: StorableRecord<T>[] = [];
  for (const { seq, at, record } of records) {
    if (isOfType(record, type)) found.push({ seq, at, record });
  }
  return found;
}

export function isOfType<T extends RecordType>(record: EvidenceRecord, type: T): record is RecordOf<T> {
  return record.type === type;
}

/** A check that the schema of one field cannot make: the nanoseconds of a runtime have to fit 64 bits. */
function outOfBounds(record: EvidenceRecord): string | null {
  if (record.type !== 'container_event') return null;
  const ns = BigInt(record.createdNs);
  return ns > INT8_MAX || ns < -INT8_MAX ? 'createdNs: does not fit 64 bits' : null;
}

function timeFault(
  record: EvidenceRecord,
  at: number,
  epochStart: number,
  { today, eventRetentionDays, findingRetentionDays }: StorableDays,
): 'expired' | 'absurd_time' | null {
  // The row of a session lies in the partition of the day on which it was opened.
  const days =
    record.type === 'stream_session' ? [dayOf(at), dayOf(epochStart + record.opened)] : [dayOf(at)];
  const oldest = today - (DAILY.has(record.type) ? eventRetentionDays : findingRetentionDays);
  const latest = dayOf(Math.max(at, ...timesOf(record).map((time) => epochStart + (time ?? 0))));
  if (latest > today + DAYS_AHEAD) return 'absurd_time';
  return days.some((day) => day < oldest) ? 'expired' : null;
}

/** The times that a record has besides its own. A record with a time in the future would outlive its retention. */
function timesOf(record: EvidenceRecord): readonly (number | null)[] {
  switch (record.type) {
    case 'relist_change':
      return [record.window.from, record.window.to];
    case 'finding':
      return [record.window?.from ?? null, record.window?.to ?? null, record.occurred];
    case 'event_overdue':
      return [record.window.from, record.window.to, record.occurred];
    case 'stream_session':
      return [record.opened, record.armed, record.closed];
    case 'gap':
      return [record.from, record.to];
    case 'mode_change':
      return [record.notBefore];
    case 'relist_minute':
      return [
        record.t + record.span,
        record.decided,
        record.statuses?.slowest?.at ?? null,
        record.statuses?.hang?.from ?? null,
        record.statuses?.hang?.to ?? null,
        ...scrapeTimes(record),
      ];
    case 'node_state':
      return [record.stream.since, record.modeSince];
    default:
      return [];
  }
}

const scrapeTimes = ({ kubelet }: RecordOf<'relist_minute'>): number[] =>
  kubelet === undefined
    ? []
    : [kubelet.scraped.from, kubelet.scraped.to, kubelet.calls?.from ?? 0, kubelet.calls?.to ?? 0];

/** A parser reads JSON that is nested deeper than a writer can follow. */
function inputBytes(input: unknown): string {
  try {
    return (JSON.stringify(input) ?? 'undefined').slice(0, MAX_BYTES);
  } catch (error) {
    if (error instanceof RangeError) return 'nested too deeply to be written';
    throw error;
  }
}
