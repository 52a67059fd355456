/*
 * How the records of one type are written: its statement and the columns that the statement takes.
 */
import type { RecordType } from '../../protocol/record.ts';
import { literal } from '../../store/literal.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { Statement } from '../../store/statement.ts';
import type { BatchScope } from './batchScope.ts';
import { isOfType, type StorableRecord } from './recordValidation.ts';

/** Records of one batch. */
export interface BatchRecords {
  readonly scope: BatchScope;
  readonly records: readonly StorableRecord[];
}

/** A record with what its batch knows. */
export interface ScopedRecord<T extends RecordType = RecordType> extends StorableRecord<T> {
  readonly scope: BatchScope;
}

/** Writes the records of batches of one cluster, each of another node, with one statement. */
export type RecordWriter = (
  runner: SqlRunner,
  cluster: number,
  batches: readonly BatchRecords[],
) => Promise<void>;

/** The writer of a type. It throws, so that nothing is committed, if a unique index has a record that its epoch does not know of. */
export function recordWriter<T extends RecordType>(
  type: T,
  statement: Statement<never>,
  values: (rows: readonly ScopedRecord<T>[]) => unknown[],
): RecordWriter {
  return async (runner, cluster, batches) => {
    const rows = scopedOfType(batches, type);
    if (rows.length === 0) return;
    await runner.run(statement, [cluster, ...values(rows)]);
  };
}

function scopedOfType<T extends RecordType>(batches: readonly BatchRecords[], type: T): ScopedRecord<T>[] {
  const found: ScopedRecord<T>[] = [];
  for (const { scope, records } of batches) {
    for (const { seq, at, record } of records) {
      if (isOfType(record, type)) found.push({ scope, seq, at, record });
    }
  }
  return found;
}

export const timeOf = ({ epochStart }: BatchScope, offset: number | null): number | null =>
  offset === null ? null : epochStart + offset;

/** The columns with which the rows of most types begin. */
export const keysOf = (rows: readonly Pick<ScopedRecord, 'scope' | 'seq' | 'at'>[]): unknown[] => [
  literal(rows, ({ scope }) => scope.nodeId),
  literal(rows, ({ scope }) => scope.contextId),
  literal(rows, ({ seq }) => seq),
  literal(rows, ({ at }) => at),
];
