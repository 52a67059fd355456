/*
 * The partitions that records need. `plegwatch maintain` makes them ahead; a day that is missing, because an agent came back with a
 * week in its spool, is made here. A partition is remembered only once it is committed.
 */
import type { RecordType } from '../../protocol/record.ts';
import { dayOf, ensurePartition } from '../store/partitions.ts';
import type { SqlRunner } from '../store/store.ts';
import type { StorableRecord } from './recordValidation.ts';

const TABLES: Readonly<Record<RecordType, readonly string[]>> = {
  container_event: ['container_event', 'container'],
  relist_change: ['relist_change', 'container'],
  relist_minute: ['relist_minute'],
  finding: ['finding'],
  finding_resolved: ['finding_update'],
  event_overdue: ['finding_update'],
  stream_session: ['stream_session'],
  gap: [],
  mode_change: ['mode_change'],
  node_state: [],
};

export interface PartitionCache {
  /** Makes what these records need in the caller's transaction; returns what that was, for {@link committed}. */
  ensure(runner: SqlRunner, records: readonly StorableRecord[], epochStart: number): Promise<string[]>;
  committed(made: readonly string[]): void;
  /** Forgets everything, after a statement found no partition. */
  forget(): void;
}

export function createPartitionCache(): PartitionCache {
  const known = new Set<string>();
  return {
    async ensure(runner, records, epochStart) {
      const wanted = new Map<string, { table: string; day: number }>();
      for (const { record, at } of records) {
        const day = dayOf(record.type === 'stream_session' ? epochStart + record.opened : at);
        for (const table of TABLES[record.type]) wanted.set(`${table} ${day}`, { table, day });
      }
      const missing = [...wanted].filter(([key]) => !known.has(key)).sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [, { table, day }] of missing) await ensurePartition(runner, table, day);
      return missing.map(([key]) => key);
    },
    committed(made) {
      for (const key of made) known.add(key);
    },
    forget() {
      known.clear();
    },
  };
}
