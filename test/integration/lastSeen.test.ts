/*
 * Until when an agent is known to have run, by the database's clock, whatever its own clocks say and however long its batches waited.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Batch } from '../../src/protocol/batch.ts';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';

const SECOND = 1_000_000;
const HOUR = 3_600 * SECOND;
/** In whole hours: a busy machine takes its time between the sealing and the row. */
const STATE = `SELECT round(extract(epoch FROM now() - n.last_seen) / 3600)::int AS hours_ago, n.mode_reason AS reason,
                      round(e.clock_ahead_ms / 3600000)::int AS clock_ahead, round(e.clock_moved_ms / 3600000)::int AS clock_moved
                 FROM plegwatch.nodes n JOIN plegwatch.epochs e USING (node)`;

let server: TestServer;
let databaseUrl: string;
let agent: ReturnType<typeof agentIncarnation>;
let first: Batch;
/** By how much what is stored was moved into the past. */
let ago: number;

/** A batch that was sealed so much later than the first, by each clock of the node. */
const cutLater = (mono: number, wall = mono): Batch => ({
  ...agent.batch(2, events(2, 2)),
  mono0: first.mono0 + mono,
  wall0: first.wall0 - ago + wall,
});

/** Lets hours pass since what is stored. */
async function hoursPass(hours: number): Promise<void> {
  ago += hours * HOUR;
  await query(
    databaseUrl,
    `UPDATE store.epoch SET started_at = started_at - $1::interval, last_batch_at = last_batch_at - $1::interval,
                            complete_through = complete_through - $1::interval, last_seen = last_seen - $1::interval`,
    [`${hours} hours`],
  );
  await query(databaseUrl, 'UPDATE store.node SET last_seen = last_seen - $1::interval', [`${hours} hours`]);
}

needs('postgres')('an agent', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  beforeEach(async () => {
    databaseUrl = await server.database();
    agent = agentIncarnation('node-a');
    first = agent.batch(1, events(1, 1));
    ago = 0;
  });
  afterAll(() => server?.stop());

  it('is silent as soon as its last batches are stored, if these waited until long after they were sealed', async () => {
    await commitAll(databaseUrl, [first]);
    await hoursPass(1);
    await commitAll(databaseUrl, [cutLater(SECOND)]);
    expect(await query(databaseUrl, STATE)).toMatchObject([{ hours_ago: 1, reason: 'AgentSilent' }]);
  });

  it('reports again with the first batch that was sealed lately, after others that waited', async () => {
    await commitAll(databaseUrl, [first]);
    await hoursPass(1);
    const fresh = { ...cutLater(HOUR + SECOND), first: 3, last: 3, records: events(3, 3) };
    await commitAll(databaseUrl, [cutLater(SECOND), fresh]);
    expect(await query(databaseUrl, STATE)).toMatchObject([{ hours_ago: 0, reason: 'NotReportedYet' }]);
  });

  it('says without a record up to when everything is decided and when its kubelet was scraped, once all before it is stored', async () => {
    const known = { decided: 7 * SECOND, scraped: 8 * SECOND };
    const probe = (more: Partial<Batch> = {}) => ({ ...agent.batch(3, [], { known, ...more }), last: 2 });
    const stored = () =>
      query(
        databaseUrl,
        `SELECT extract(epoch FROM decided_through - started_at)::float8 AS decided,
                extract(epoch FROM kubelet_seen_to - started_at)::float8 AS scraped FROM store.epoch`,
      );
    await commitAll(databaseUrl, [first, probe()]);
    expect(await stored()).toEqual([{ decided: null, scraped: null }]);
    await commitAll(databaseUrl, [agent.batch(2, events(2, 2)), probe()]);
    expect(await stored()).toEqual([{ decided: 7, scraped: 8 }]);
    // Nothing is known of a time after the batch was sealed, and what was known stays so.
    await commitAll(databaseUrl, [probe({ known: { decided: HOUR, scraped: null }, mono0: 9 * SECOND })]);
    expect(await stored()).toEqual([{ decided: 9, scraped: 8 }]);
  });

  it('is not silent because its clock is an hour behind', async () => {
    first = { ...first, wall0: first.wall0 - HOUR };
    await commitAll(databaseUrl, [first, cutLater(SECOND)]);
    expect(await query(databaseUrl, STATE)).toEqual([
      { hours_ago: 0, reason: 'NotReportedYet', clock_ahead: -1, clock_moved: 0 },
    ]);
  });

  it('is not silent because its machine was suspended, or its clock was set: the times of its records are off by as much', async () => {
    await commitAll(databaseUrl, [first]);
    await hoursPass(1);
    await commitAll(databaseUrl, [cutLater(SECOND, HOUR + SECOND)]);
    expect(await query(databaseUrl, STATE)).toEqual([
      { hours_ago: 0, reason: 'NotReportedYet', clock_ahead: -1, clock_moved: 1 },
    ]);
  });

  it('whose clock is ahead is dated by the clock of the database: nothing is sealed after it is stored', async () => {
    first = { ...first, wall0: first.wall0 + HOUR };
    await commitAll(databaseUrl, [first, cutLater(SECOND / 1_000)]);
    expect(await query(databaseUrl, STATE)).toEqual([
      { hours_ago: 0, reason: 'NotReportedYet', clock_ahead: 0, clock_moved: 1 },
    ]);
  });

  it('whose clocks drift apart from that of the database by a few ppm is not silent after months', async () => {
    await commitAll(databaseUrl, [first]);
    for (let days = 1; days <= 3; days += 1) {
      await hoursPass(24);
      // 100 ppm slow.
      const passed = days * 24 * (HOUR - 0.36 * SECOND);
      const seq = days + 1;
      await commitAll(databaseUrl, [
        { ...cutLater(passed, days * 24 * HOUR), first: seq, last: seq, records: events(seq, seq) },
      ]);
    }
    const [row] = await query<{ late: number }>(
      databaseUrl,
      'SELECT extract(epoch FROM last_stored_at - last_seen)::float8 AS late FROM store.epoch',
    );
    expect(row?.late).toBeLessThan(0.001);
  });
});
