/*
 * The size of a record in Postgres, with its indexes and names, and in its log: nodes that replace a pod in three minutes, for eight hours, stored by
 * a controller's committer. docs/development/measurements.md says where the bytes are.
 */
import { startServer } from '../../test/support/database.ts';
import { measureBytes, type StoredBytes } from '../../test/support/storedBytes.ts';
import type { TableRow } from '../table.ts';
import { type BenchPart, log, SHORT } from './part.ts';

const RATES = {
  ...{ pods: 30, minutesAPod: 3, relistPeriodMs: 5_000 },
  ...(SHORT ? { nodes: 5, minutes: 60, recorded: 10 } : { nodes: 20, minutes: 480, recorded: 120 }),
};
/** The same nodes while nothing happens: a record is of ten minutes. */
const CALM_RATES = {
  ...RATES,
  minutesAPod: Number.MAX_SAFE_INTEGER,
  recorded: RATES.minutes,
  calmMinutes: 10,
};
const MAX_EVENT = 200;
const MAX_CALM_MINUTE = 100;
const CALM_GOAL = 60;
const GOAL = 100;

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
    figure: `${minute.toFixed(0)} (${(minute / CALM_GOAL).toFixed(2)} × the goal of ${CALM_GOAL})`,
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
  const goal = (value: number) => `${value.toFixed(0)} (${(value / GOAL).toFixed(2)} × the goal of ${GOAL})`;
  return [
    {
      what: 'an event, with its indexes and its share of names',
      figure: goal(event),
      budget: `≤ ${MAX_EVENT}`,
      // A short form fills no page.
      met: SHORT ? null : event <= MAX_EVENT,
    },
    { what: '  of these, names', figure: (of('container') / events).toFixed(0) },
    { what: 'a relist change', figure: (of('relist_change') / changes).toFixed(0) },
    { what: 'a minute of a node', figure: goal(minute) },
    { what: 'an hour of a node', figure: (of('relist_hour') / hours).toFixed(0) },
    {
      what: 'write-ahead log: an event with its names and changes, a minute with its hour',
      figure: `${(wal.events / events).toFixed(0)}, ${(wal.minutes / minutes).toFixed(0)}`,
    },
  ];
}
