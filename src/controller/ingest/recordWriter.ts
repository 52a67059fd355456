/*
 * How the records of one type are written: its statement and the columns that the statement takes.
 */
import type { RecordType } from '../../protocol/record.ts';
import { arrayLiteral } from '../store/arrayLiteral.ts';
import type { SqlRunner, SqlStatement } from '../store/store.ts';
import type { BatchScope } from './batchScope.ts';
import { ofType, type StorableRecord } from './recordValidation.ts';

export interface RecordWriterOptions<T extends RecordType> {
  readonly statement: SqlStatement;
  /** The statement makes exactly one row for each record, and returns how many it made. */
  readonly oneRowEach: boolean;
  readonly values: (scope: BatchScope, rows: readonly StorableRecord<T>[]) => unknown[];
}

/** Writes those of the records that are of its type. */
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

/** A column of numbers, or of text that consists of digits and letters only. */
export function literal<R>(rows: readonly R[], value: (row: R) => number | string | null): string {
  return arrayLiteral(rows.map(value));
}

/** The wall-clock time of an offset from the start of the epoch; null stays null. */
export const timeOf = ({ epochStart }: BatchScope, offset: number | null): number | null =>
  offset === null ? null : epochStart + offset;
