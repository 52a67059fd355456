/*
 * The partitions that records need. `plegwatch maintain` makes them ahead; a day that is missing, because an agent came back with a
 * week in its spool, is made here. A partition is remembered only once it is committed.
 */
import type { RecordType } from '../../protocol/record.ts';
import { dayOf, ensurePartition } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { StorableRecord } from './recordValidation.ts';

const TABLES: Readonly<Record<RecordType, readonly string[]>> = {
  container_event: ['container_event', 'container'],
  relist_change: ['relist_change', 'container'],
  // It names the container whose status was slow.
  relist_minute: ['relist_minute', 'relist_hour', 'container'],
  finding: ['finding'],
  finding_resolved: ['finding_update'],
  event_overdue: ['finding_update'],
  stream_session: ['stream_session'],
  gap: [],
  mode_change: ['mode_change'],
  node_state: [],
};

/** A partition that holds the rows of a table of one day. */
export interface Partition {
  readonly table: string;
  readonly day: number;
}

export interface PartitionCache {
  /** Makes what these records need in the caller's transaction; returns what that was, for {@link committed}. */
  ensure(runner: SqlRunner, records: readonly StorableRecord[], epochStart: number): Promise<Partition[]>;
  committed(made: readonly Partition[]): void;
  /** Whether everything that these records need is there already. */
  knows(records: readonly StorableRecord[], epochStart: number): boolean;
  /** Forgets everything, after a statement found no partition. */
  forget(): void;
}

export function createPartitionCache(): PartitionCache {
  /** The tables of each day. */
  const known = new Map<number, Set<string>>();
  const missingOf = (records: readonly StorableRecord[], epochStart: number) => {
    const wanted = new Map<string, Partition>();
    for (const { record, at } of records) {
      const day = dayOf(record.type === 'stream_session' ? epochStart + record.opened : at);
      for (const table of TABLES[record.type]) {
        if (!known.get(day)?.has(table)) wanted.set(`${table} ${day}`, { table, day });
      }
    }
    return [...wanted].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, partition]) => partition);
  };
  return {
    knows: (records, epochStart) => missingOf(records, epochStart).length === 0,
    async ensure(runner, records, epochStart) {
      const missing = missingOf(records, epochStart);
      for (const { table, day } of missing) await ensurePartition(runner, table, day);
      return missing;
    },
    committed(made) {
      for (const { table, day } of made) known.set(day, (known.get(day) ?? new Set()).add(table));
    },
    forget() {
      known.clear();
    },
  };
}
