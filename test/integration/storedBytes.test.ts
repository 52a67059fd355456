/*
 * How many bytes a record takes in Postgres. With PLEGWATCH_BYTES_NODES, this many nodes run for a day, and the test prints where the bytes are: the
 * figures of docs/development/measurements.md.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAX_INT4 } from '../../src/protocol/record.ts';
import { packLists } from '../../src/store/listTimes.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { measureBytes, type StoredBytes } from '../support/storedBytes.ts';

const NODES = process.env['PLEGWATCH_BYTES_NODES'];
const PERIOD_MS = Number(process.env['PLEGWATCH_BYTES_PERIOD_MS'] ?? 5_000);
const RATES = { pods: 30, minutesAPod: 3, relistPeriodMs: PERIOD_MS };

needs('postgres')('the rows of records', () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => {
    await server?.stop();
  });

  it('stay within the bytes for which a database is sized', { timeout: 3_600_000 }, async () => {
    const size =
      NODES === undefined
        ? { nodes: 3, minutes: 9, recorded: 3 }
        : { nodes: Number(NODES), minutes: 1_440, recorded: 120 };
    const stored = await measureBytes(await server.database(), { ...RATES, ...size });
    if (NODES !== undefined) process.stdout.write(printed(stored));
    expect(stored.row.container_event).toBeLessThanOrEqual(72);
    expect(stored.row.relist_change).toBeLessThanOrEqual(72);
    expect(stored.row.container).toBeLessThanOrEqual(188);
    if (PERIOD_MS === 5_000) expect(stored.row.relist_minute).toBeLessThanOrEqual(420);
    expect(stored.row.relist_hour).toBeLessThanOrEqual(460);
  });

  it('show every UID as it was packed', async () => {
    const uids = [
      '0f8fad5b-d9cb-469f-a165-70867728950e',
      '0f8fad5bd9cb469fa16570867728950e',
      '0F8FAD5B-D9CB-469F-A165-70867728950E',
      ...['sixteen bytes is', 'seventeen bytes i', 'a', ''],
    ];
    const text =
      'SELECT store.uid_text(store.uid_bytes(uid)) AS uid, octet_length(store.uid_bytes(uid)) AS bytes FROM unnest($1::text[]) AS uid';
    const rows = await query(await server.database(), text, [uids]);
    expect(rows.map(({ uid }) => uid)).toEqual(uids);
    expect(rows[0]).toMatchObject({ bytes: 16 });
  });

  it('show the times of relists in SQL as they were packed', async () => {
    const relists = [
      [1_000, 2_000, 2_050, 4_000, 0, -3_000_000],
      [5_001_200, 5_002_300, 5_002_350, 5_004_000, 0, -3_000_000],
      [10_000_000, 9_999_990, 10_000_000, MAX_INT4, 7, -MAX_INT4],
      [-MAX_INT4, MAX_INT4, -MAX_INT4, MAX_INT4, 0, MAX_INT4],
    ];
    const text = `SELECT ARRAY[sandboxes_from, sandboxes_to, containers_from, containers_to, flags, events_to]::int4[] AS relist
      FROM store.relists_of($1)`;
    const rows = await query(await server.database(), text, [packLists(relists.flat())]);
    expect(rows.map(({ relist }) => relist)).toEqual(relists);
  });
});

function printed({ relations, rows, row, wal }: StoredBytes): string {
  const { container_event: events, relist_minute: minutes } = rows;
  const counts = new Map<string, number>(Object.entries(rows));
  return [
    JSON.stringify({ rows, row }),
    ...relations.map(({ table, part, bytes }) => {
      const count = counts.get(table) ?? 1;
      return `${table} ${part}: ${(bytes / count).toFixed(1)} a row, ${(bytes / events).toFixed(1)} an event`;
    }),
    `WAL: ${(wal.events / events).toFixed(0)} an event, ${(wal.minutes / minutes).toFixed(0)} a minute`,
    '',
  ].join('\n');
}
