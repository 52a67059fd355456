/*
 * What becomes of the new records of a batch, before anything touches the database. Pure.
 *
 *   placed     a record with its seq and its time on the wall clock (base + offset): it will be stored
 *   unstored   a record that cannot be: malformed, absurdly dated, or older than what is kept. It becomes a gap
 *
 * Times are microseconds since 1970, days are whole days since 1970 in UTC.
 */
import type { Envelope } from '../../protocol/batch.ts';
import { type EvidenceRecord, parseRecord, type RecordOf, type RecordType } from '../../protocol/record.ts';
import { asText } from './asText.ts';
import { type Range, seqsOf } from './ranges.ts';

export interface Placed<K extends RecordType = RecordType> {
  readonly seq: number;
  readonly at: number;
  readonly record: RecordOf<K>;
}

export interface Unstored {
  readonly seq: number;
  readonly cause: 'unreadable' | 'absurd_time' | 'expired' | 'refused_by_database';
  readonly error: string;
  /** What arrived, as JSON; null where nothing is wrong with it. */
  readonly bytes: string | null;
}

export interface Intake {
  readonly placed: Placed[];
  readonly unstored: Unstored[];
}

/** Which days can be stored. */
export interface Horizon {
  readonly today: number;
  readonly retentionDays: number;
  readonly keepDays: number;
}

/** Partitions are made so many days ahead; a record from further in the future is absurd. */
const DAYS_AHEAD = 3;

const DAY_US = 86_400_000_000;
const MAX_BYTES = 16_384;
const INT8_MAX = 2n ** 63n - 1n;
/** Kinds whose partitions are days; the others are kept for `keepDays`. */
const DAILY: ReadonlySet<RecordType> = new Set(['container_event', 'relist_change', 'relist_minute']);

export const dayOf = (micros: number): number => Math.floor(micros / DAY_US);

/** Sorts the records of these seqs. `base` is the wall-clock time of the epoch's start. */
export function takeIn(envelope: Envelope, fresh: readonly Range[], base: number, horizon: Horizon): Intake {
  const placed: Placed[] = [];
  const unstored: Unstored[] = [];
  for (const seq of seqsOf(fresh)) {
    const input = envelope.records[seq - envelope.first];
    const parsed = parseRecord(input);
    const error = parsed.ok ? outOfBounds(parsed.value) : parsed.error;
    if (!parsed.ok || error !== null) {
      unstored.push({ seq, cause: 'unreadable', error: error ?? '', bytes: asBytes(input) });
      continue;
    }
    const record = parsed.value;
    const at = base + record.t;
    const cause = untimely(record, at, base, horizon);
    if (cause === null) placed.push({ seq, at, record });
    else {
      const error = `t: ${new Date(at / 1000).toISOString()}`;
      unstored.push({ seq, cause, error, bytes: cause === 'expired' ? null : asBytes(input) });
    }
  }
  return { placed, unstored };
}

/** A placed record as one that the database refused. */
export function refusedByDatabase({ seq, record }: Placed, error: string): Unstored {
  return { seq, cause: 'refused_by_database', error, bytes: asBytes(record) };
}

export function ofKind<K extends RecordType>(placed: readonly Placed[], kind: K): Placed<K>[] {
  const found: Placed<K>[] = [];
  for (const { seq, at, record } of placed) {
    if (isKind(record, kind)) found.push({ seq, at, record });
  }
  return found;
}

function isKind<K extends RecordType>(record: EvidenceRecord, kind: K): record is RecordOf<K> {
  return record.type === kind;
}

/** What a schema of one field cannot say: a runtime's nanoseconds have to fit 64 bits. */
function outOfBounds(record: EvidenceRecord): string | null {
  if (record.type !== 'container_event') return null;
  const ns = BigInt(record.createdNs);
  return ns > INT8_MAX || ns < -INT8_MAX ? 'createdNs: does not fit 64 bits' : null;
}

function untimely(
  record: EvidenceRecord,
  at: number,
  base: number,
  { today, retentionDays, keepDays }: Horizon,
): 'expired' | 'absurd_time' | null {
  // A session's row lies in the partition of the moment it was opened.
  const days = record.type === 'stream_session' ? [dayOf(at), dayOf(base + record.opened)] : [dayOf(at)];
  const oldest = today - (DAILY.has(record.type) ? retentionDays : keepDays);
  if (days.some((day) => day > today + DAYS_AHEAD)) return 'absurd_time';
  return days.some((day) => day < oldest) ? 'expired' : null;
}

function asBytes(input: unknown): string {
  return asText(input).slice(0, MAX_BYTES);
}
