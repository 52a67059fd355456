/*
 * How the records of one type are written: its statement and the columns that the statement takes.
 */
import type { RecordType } from '../../protocol/record.ts';
import { literal } from '../store/literal.ts';
import type { SqlRunner, SqlStatement } from '../store/store.ts';
import type { BatchScope } from './batchScope.ts';
import { ofType, type StorableRecord } from './recordValidation.ts';

export interface RecordWriterOptions<T extends RecordType> {
  readonly statement: SqlStatement;
  /** The statement makes exactly one row for each record, and returns how many it made. */
  readonly oneRowEach: boolean;
  readonly values: (scope: BatchScope, rows: readonly StorableRecord<T>[]) => unknown[];
}

export type RecordWriter = (
  runner: SqlRunner,
  scope: BatchScope,
  records: readonly StorableRecord[],
) => Promise<void>;

/** The store holds rows that their epoch does not know of: the unique index and the set of received seqs disagree. */
class RowCountError extends Error {
  override readonly name = 'RowCountError';
}

/** The writer of a type. It throws, so that nothing is committed, if the number of rows made is not that of the records. */
export function recordWriter<T extends RecordType>(
  type: T,
  { statement, oneRowEach, values }: RecordWriterOptions<T>,
): RecordWriter {
  return async (runner, scope, records) => {
    const rows = ofType(records, type);
    if (rows.length === 0) return;
    const { count } = await runner.run(statement, values(scope, rows));
    if (oneRowEach && count !== rows.length) {
      throw new RowCountError(`${rows.length} ${type} records are new, ${count} rows were made`);
    }
  };
}

export const timeOf = ({ epochStart }: BatchScope, offset: number | null): number | null =>
  offset === null ? null : epochStart + offset;

/** The columns with which the rows of most types begin. */
export const keysOf = (
  { nodeId, contextId, clusterId }: BatchScope,
  rows: readonly Pick<StorableRecord, 'seq' | 'at'>[],
): unknown[] => [
  nodeId,
  contextId,
  clusterId,
  literal(rows, ({ seq }) => seq),
  literal(rows, ({ at }) => at),
];
