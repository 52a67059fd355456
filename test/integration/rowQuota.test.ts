/*
 * How many rows of a node are stored in a day, from a real Redis to a real Postgres: what a node sends over that is acknowledged and counted,
 * in rows that do not grow with it.
 */
import { beforeEach, expect, it } from 'vitest';
import { RESERVED_ROWS } from '../../src/controller/ingest/rowQuota.ts';
import { agentIncarnation, type BatchIncarnation } from '../support/batches.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';

const QUEUES = 1;
/** An epoch and its context take two of them. */
const ROWS_PER_DAY = 10;

needs('postgres', 'redis-server')('the rows that a node stores in a day', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, sendInTurn, ackedSeq, storedSeqs } = bed;

  beforeEach(() => bed.start({ nodeRowsPerDay: ROWS_PER_DAY }));

  const gapsOf = (one: BatchIncarnation) =>
    rows(
      `SELECT cause, from_seq, to_seq, records, filled_at IS NOT NULL AS filled
       FROM plegwatch.gaps WHERE scope = 'seq' AND epoch = $1 ORDER BY from_seq`,
      [one.epoch],
    );
  const nextDay = () => rows('UPDATE store.node SET rows_day = rows_day - 1');

  it('records over the quota are acknowledged and counted in one gap of their epoch, and the next day is stored again', async () => {
    const one = agentIncarnation('node-a');
    await sendInTurn(one.batch(1, events(1, 6)), one.batch(7, events(7, 12)), one.batch(13, events(13, 15)));
    expect(await storedSeqs(one)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await ackedSeq(one)).toBe(15);
    const gap = { cause: 'over_quota', from_seq: 9, to_seq: 15, records: 7, filled: false };
    expect(await gapsOf(one)).toEqual([gap]);
    const { values } = await bed.metrics.records.get();
    expect(values.find(({ labels }) => labels['result'] === 'over_quota')?.value).toBe(7);
    await nextDay();
    await sendInTurn(one.batch(16, events(16, 17)));
    expect(await storedSeqs(one)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 16, 17]);
    expect(await ackedSeq(one)).toBe(17);
    expect(await gapsOf(one)).toEqual([gap]);
  });

  it('one node over its quota takes nothing from another', async () => {
    const one = agentIncarnation('node-a');
    const other = agentIncarnation('node-b');
    await sendInTurn(one.batch(1, events(1, 20)), other.batch(1, events(1, 3)));
    expect(await storedSeqs(other)).toEqual([1, 2, 3]);
    expect(await gapsOf(other)).toEqual([]);
  });

  it('records over the quota that are sent again count once, and shrink their gap when a later day stores them', async () => {
    const one = agentIncarnation('node-a');
    await sendInTurn(one.batch(1, events(1, 8)), one.batch(9, events(9, 12)), one.batch(9, events(9, 12)));
    expect(await gapsOf(one)).toEqual([
      { cause: 'over_quota', from_seq: 9, to_seq: 12, records: 4, filled: false },
    ]);
    await nextDay();
    await sendInTurn(one.batch(9, events(9, 11)));
    expect(await storedSeqs(one)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(await gapsOf(one)).toMatchObject([{ from_seq: 9, to_seq: 12, records: 1, filled: false }]);
    await sendInTurn(one.batch(12, events(12, 12)));
    expect(await gapsOf(one)).toMatchObject([{ records: 0, filled: true }]);
  });

  it('losses of one batch that are more than the rows left share one gap, and those of an epoch that is closed do too', async () => {
    const one = agentIncarnation('node-a');
    const lost = [2, 4, 6, 8, 10, 12, 14, 16, 18, 20].map((seq) => ({
      from: seq,
      to: seq,
      cause: 'spool_full',
    }));
    await sendInTurn(one.batch(21, events(21, 21), { lost }));
    expect(await gapsOf(one)).toEqual([
      { cause: 'over_quota', from_seq: 2, to_seq: 20, records: 10, filled: false },
    ]);
    const before = agentIncarnation('node-b', 1);
    const after = agentIncarnation('node-b', 2);
    const odd = [1, 3, 5, 7].map((seq) => before.batch(seq, events(seq, seq)));
    await sendInTurn(...odd, after.batch(1, events(1, 1)));
    expect(await gapsOf(before)).toEqual([
      { cause: 'over_quota', from_seq: 2, to_seq: 6, records: 3, filled: false },
    ]);
  });

  it('records that cannot be stored count as the rows of their gaps', async () => {
    const one = agentIncarnation('node-a');
    const bad = events(1, 6).map((record) => ({ ...record, containerId: '' }));
    await sendInTurn(one.batch(1, bad), one.batch(7, events(7, 10)));
    expect(await storedSeqs(one)).toEqual([7, 8]);
    const gaps = await gapsOf(one);
    expect(gaps).toHaveLength(7);
    expect(gaps.at(-1)).toMatchObject({ cause: 'over_quota', from_seq: 9, to_seq: 10 });
    expect(await ackedSeq(one)).toBe(10);
  });

  it('an agent that restarts over the quota goes on to be known, until its node has used up the reserve', async () => {
    const first = agentIncarnation('node-a', 1);
    const second = agentIncarnation('node-a', 2);
    const third = agentIncarnation('node-a', 3);
    await sendInTurn(first.batch(1, events(1, 20)), second.batch(1, events(1, 2)));
    expect(await ackedSeq(second)).toBe(2);
    expect(await gapsOf(second)).toMatchObject([{ cause: 'over_quota', records: 2 }]);
    await rows('UPDATE store.node SET day_rows = day_rows + $1', [RESERVED_ROWS]);
    await sendInTurn(third.batch(1, events(1, 2)), second.batch(3, events(3, 3)));
    expect(await ackedSeq(second)).toBe(3);
    expect(await bed.sender.reply(third)).toBeNull();
    expect(await rows('SELECT reason, claimed_node FROM plegwatch.rejected')).toEqual([
      { reason: 'over_quota', claimed_node: 'node-a' },
    ]);
    await nextDay();
    await sendInTurn(third.batch(1, events(1, 2)));
    expect(await storedSeqs(third)).toEqual([1, 2]);
  });
});
