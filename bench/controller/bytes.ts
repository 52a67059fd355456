/*
 * The size of a record in Postgres, with its indexes and names, and in its log: nodes that replace a pod in three minutes, for a day, stored by a
 * controller's committer. docs/development/measurements.md says where the bytes are.
 */
import { startServer } from '../../test/support/database.ts';
import { measureBytes, type StoredBytes } from '../../test/support/storedBytes.ts';
import type { TableRow } from '../table.ts';
import { type BenchPart, log, SHORT } from './part.ts';

const RATES = {
  ...{ pods: 30, minutesAPod: 3, relistPeriodMs: 5_000 },
  ...(SHORT ? { nodes: 5, minutes: 60, recorded: 10 } : { nodes: 10, minutes: 1_440, recorded: 480 }),
};
/** The same nodes while nothing happens: a record is of ten minutes. */
const CALM_RATES = {
  ...RATES,
  minutesAPod: Number.MAX_SAFE_INTEGER,
  recorded: RATES.minutes,
  calmMinutes: 10,
};
/** Databases are sized by 204, which many nodes take: ten leave more of their pages empty. */
const MAX_EVENT = 220;
const MAX_CALM_MINUTE = 100;
const EVENT_GOAL = 140;
const CALM_GOAL = 60;

export const bytes: BenchPart = {
  name: 'bytes',
  title: 'Bytes of a record in Postgres',
  async run() {
    const server = await startServer();
    try {
      log(`bytes: ${RATES.minutes} minutes of ${RATES.nodes} nodes`);
      const calm = await measureBytes(await server.database(), CALM_RATES);
      return {
        rows: [...rowsOf(await measureBytes(await server.database(), RATES)), calmRow(calm)],
        plots: [],
      };
    } finally {
      await server.stop();
    }
  },
};

function calmRow({ relations }: StoredBytes): TableRow {
  const stored = relations
    .filter(({ table }) => table === 'relist_minute' || table === 'relist_hour')
    .reduce((sum, { bytes }) => sum + bytes, 0);
  const minute = stored / (CALM_RATES.nodes * CALM_RATES.minutes);
  return {
    what: 'a calm minute of a node, with its share of the hour',
    figure: beside(minute, CALM_GOAL),
    budget: `≤ ${MAX_CALM_MINUTE}`,
    met: SHORT ? null : minute <= MAX_CALM_MINUTE,
  };
}

function rowsOf({ relations, rows, wal }: StoredBytes): TableRow[] {
  const of = (...tables: readonly (keyof StoredBytes['rows'])[]) =>
    relations
      .filter(({ table }) => tables.some((each) => each === table))
      .reduce((sum, each) => sum + each.bytes, 0);
  const {
    container_event: events,
    relist_change: changes,
    relist_minute: minutes,
    relist_hour: hours,
  } = rows;
  const event = of('container_event', 'container') / events;
  const minute = of('relist_minute') / minutes;
  return [
    {
      what: 'an event, with its indexes and its share of names',
      figure: beside(event, EVENT_GOAL),
      budget: `≤ ${MAX_EVENT}`,
      // A short form fills no page.
      met: SHORT ? null : event <= MAX_EVENT,
    },
    { what: '  of these, names', figure: (of('container') / events).toFixed(0) },
    { what: 'a relist change', figure: (of('relist_change') / changes).toFixed(0) },
    { what: 'a minute of a node', figure: minute.toFixed(0) },
    { what: 'an hour of a node', figure: (of('relist_hour') / hours).toFixed(0) },
    {
      what: 'write-ahead log: an event with its names and changes, a minute with its hour',
      figure: `${(wal.events / events).toFixed(0)}, ${(wal.minutes / minutes).toFixed(0)}`,
    },
  ];
}

const beside = (value: number, goal: number): string =>
  `${value.toFixed(0)} (${(value / goal).toFixed(2)} × the goal of ${goal})`;
