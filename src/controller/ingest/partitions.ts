/*
 * The partitions that records need. They are made ahead by `plegwatch maintain`; a day that is missing, because an agent
 * came back with a week in its spool, is made here. What exists is remembered only once it is committed.
 */
import type { RecordType } from '../../protocol/record.ts';
import makePartition from '../store/sql/makePartition.sql';
import type { Runner } from '../store/store.ts';
import { dayOf, type Placed } from './recordValidation.ts';

const TABLES: Readonly<Partial<Record<RecordType, readonly string[]>>> = {
  container_event: ['container_event', 'container'],
  relist_change: ['relist_change', 'container'],
  relist_minute: ['relist_minute'],
  finding: ['finding'],
  finding_resolved: ['finding_update'],
  event_overdue: ['finding_update'],
  stream_session: ['stream_session'],
  mode_change: ['mode_change'],
};

export interface Partitions {
  /** Makes what these records need inside the caller's transaction; returns what that was, for {@link committed}. */
  ensure(runner: Runner, placed: readonly Placed[], base: number): Promise<string[]>;
  committed(made: readonly string[]): void;
  /** Forgets everything, after a statement found no partition. */
  forget(): void;
}

export function createPartitions(): Partitions {
  const known = new Set<string>();
  return {
    async ensure(runner, placed, base) {
      const wanted = new Map<string, { table: string; day: number }>();
      for (const { record, at } of placed) {
        const day = dayOf(record.type === 'stream_session' ? base + record.opened : at);
        for (const table of TABLES[record.type] ?? []) wanted.set(`${table} ${day}`, { table, day });
      }
      const missing = [...wanted].filter(([key]) => !known.has(key)).sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [, { table, day }] of missing) await runner.run({ text: makePartition }, [table, day]);
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
