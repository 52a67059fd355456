/*
 * The stored rows of an epoch in their stored form (src/protocol/storedRecord.ts), in the order of seqs.
 */
import { contextDigest } from '../protocol/recordChain.ts';
import type { StoredForm, StoredType } from '../protocol/storedRecord.ts';
import { unpackLists } from '../store/listTimes.ts';
import type { SqlRunner } from '../store/runner.ts';
import type { RowOf } from '../store/statement.ts';
import type { EpochRow } from './epochRecords.ts';
import {
  readSignedChanges,
  readSignedContexts,
  readSignedEvents,
  readSignedFindings,
  readSignedMinutes,
  readSignedModes,
} from './signedStatements.ts';

export interface SignedRow {
  readonly seq: number;
  readonly type: StoredType;
  /** The {@link contextDigest} of its context. */
  readonly context: string;
  readonly form: StoredForm;
}

/** This many seqs are read at once; twice as many each time where there are no rows. */
const WINDOW = 5_000;

interface KeyedRow {
  readonly seq: number;
  readonly context_id: number;
  readonly fits: boolean;
}

export class SignedRows {
  readonly #sql: SqlRunner;
  readonly #row: EpochRow;
  readonly #contexts: ReadonlyMap<number, string>;

  private constructor(sql: SqlRunner, row: EpochRow, contexts: ReadonlyMap<number, string>) {
    this.#sql = sql;
    this.#row = row;
    this.#contexts = contexts;
  }

  static async of(sql: SqlRunner, row: EpochRow): Promise<SignedRows> {
    const { rows } = await sql.run(readSignedContexts, [row.node_id, row.epoch]);
    return new SignedRows(sql, row, new Map(rows.map((context) => [context.context_id, digestOf(context)])));
  }

  /** Those with these seqs, both included. */
  async *between(from: number, to: number): AsyncGenerator<SignedRow> {
    let size = WINDOW;
    for (let after = from - 1; after < to; ) {
      const until = Math.min(to, after + size);
      const rows = await this.#read(after, until);
      yield* rows.sort((a, b) => a.seq - b.seq);
      size = rows.length === 0 ? 2 * size : WINDOW;
      after = until;
    }
  }

  async #read(after: number, to: number): Promise<SignedRow[]> {
    const { node_id, started_us } = this.#row;
    const values = [node_id, [...this.#contexts.keys()], after, to, started_us];
    const [events, changes, minutes, findings, modes] = [
      await this.#sql.run(readSignedEvents, values),
      await this.#sql.run(readSignedChanges, values),
      await this.#sql.run(readSignedMinutes, values),
      await this.#sql.run(readSignedFindings, values),
      await this.#sql.run(readSignedModes, values),
    ];
    return [
      ...events.rows.map((row) => this.#signed('container_event', row)),
      ...changes.rows.map((row) => this.#signed('relist_change', row)),
      ...minutes.rows.map((row) => this.#signed('relist_minute', unpacked(row))),
      ...findings.rows.map((row) => this.#signed('finding', row)),
      ...modes.rows.map((row) => this.#signed('mode_change', row)),
    ];
  }

  #signed(type: StoredType, { seq, context_id, fits, ...form }: KeyedRow): SignedRow {
    const context = this.#contexts.get(context_id) ?? '';
    const isSaid = Object.values(form).every((each) => typeof each !== 'number' || Number.isFinite(each));
    // No record has this column: what does not fit was not signed. As JSON, a number without end is the same as none.
    return { seq, type, context, form: fits && isSaid ? form : { ...form, fits: false } };
  }
}

const unpacked = ({ lists, ...row }: RowOf<typeof readSignedMinutes>) => ({
  ...row,
  lists: unpackLists(lists),
});

const digestOf = (row: RowOf<typeof readSignedContexts>): string =>
  contextDigest({
    no: row.context_no,
    runtime: { name: row.runtime_name, version: row.runtime_version },
    kubelet: row.kubelet_version,
    agent: row.agent_version,
    settings: {
      relistPeriod: row.relist_period_us,
      overdueAfter: row.overdue_after_us,
      missedAfter: row.missed_after_us,
      lateAfter: row.late_after_us,
    },
  });
