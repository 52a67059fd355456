/*
 * GET /api/hours: what went wrong in each pool over days, in slices of whole hours, and when versions changed.
 * GET /api/change: what became worse since yesterday, by the same figures.
 *
 * Both read the hours of all nodes, so they are remembered for a minute, and for longer where that takes long.
 */
import { changeUntil, readTwoDays } from '../../analysis/hours/change.ts';
import { HOUR_MS, MAX_SHOWN_POOLS, readPoolHours, readVersionChanges } from '../../analysis/hours/hours.ts';
import { NO_NODE, orderedPools } from '../../analysis/readiness/readiness.ts';
import { ordered } from '../../platform/ordered.ts';
import type { ChangeAnswer, HoursAnswer } from '../api.ts';
import { daysIn, parametersOf } from '../parameters.ts';
import { keptBy, remembered } from '../remembered.ts';
import { type Reader, readEach } from './reader.ts';

const MAX_DAYS = 400;
const DEFAULT_DAYS = 7;
const MAX_CHANGES = 500;
/** Slices of a drawing: more would be narrower than a pixel on a small screen. */
const MAX_SLICES = 200;
/** Lengths of slices that days begin or end with. */
const SLICE_HOURS = [1, 2, 4, 6, 12, 24, 48];
const keptFor = keptBy(60, 60_000, 600_000);
const MAX_KEPT = 8;

export function hoursAnswers(reader: Reader): (query: URLSearchParams) => Promise<HoursAnswer> {
  const answers = remembered<HoursAnswer>({ keptFor, max: MAX_KEPT });
  return async (query) => {
    const days = daysIn(parametersOf(query, ['days']), DEFAULT_DAYS, MAX_DAYS);
    return answers.ask(`${days}`, () => hoursAnswer(reader, days, new Date()));
  };
}

export function changeAnswers(reader: Reader): (query: URLSearchParams) => Promise<ChangeAnswer> {
  const answers = remembered<ChangeAnswer>({ keptFor, max: 1 });
  return async (query) => {
    parametersOf(query, []);
    return answers.ask('', () => changeAnswer(reader, new Date()));
  };
}

/** Slices of a period of whole hours; the slices begin where days do, so that a day is a whole number of them. */
function slicesOf(days: number, now: Date): { readonly from: Date; readonly seconds: number } {
  const hours = SLICE_HOURS.find((each) => (days * 24) / each <= MAX_SLICES) ?? Math.max(...SLICE_HOURS);
  const ms = hours * HOUR_MS;
  const from = new Date(Math.floor((now.getTime() - days * 24 * HOUR_MS) / ms) * ms);
  return { from, seconds: ms / 1000 };
}

async function hoursAnswer(reader: Reader, days: number, now: Date): Promise<HoursAnswer> {
  const { clusters } = reader;
  const { from, seconds } = slicesOf(days, now);
  const hours = await readEach(reader, async (sql) => {
    const { rows } = await sql.run(readPoolHours, [clusters, from, now, seconds, MAX_SHOWN_POOLS]);
    return rows;
  });
  const changes = await readEach(reader, async (sql) => {
    const { rows } = await sql.run(readVersionChanges, [clusters, from, now, seconds, MAX_CHANGES + 1]);
    return rows;
  });
  const pools = hours.reduce((sum, rows) => sum + (rows[0]?.pools ?? 0), 0);
  const largest = new Set(ordered(hours, ({ nodes }) => -nodes).slice(0, MAX_SHOWN_POOLS));
  const rows = orderedPools(hours).filter((pool) => largest.has(pool));
  const versions = ordered(
    changes,
    ({ nodes }) => -nodes,
    ({ at }) => Date.parse(at),
    ({ cluster }) => cluster,
  );
  return {
    ...{ now: now.toISOString(), from: from.toISOString(), to: now.toISOString(), seconds },
    pools: rows.map(({ pools: _, silent: __, ...pool }) => pool),
    leftOut: pools > rows.length ? pools - rows.length : null,
    versions: versions.slice(0, MAX_CHANGES),
    versionsCut: versions.length > MAX_CHANGES,
    empty: rows.length === 0 ? NO_NODE : null,
  };
}

async function changeAnswer(reader: Reader, now: Date): Promise<ChangeAnswer> {
  const pools = await readEach(reader, (sql) => readTwoDays(sql, reader.clusters, now));
  return { now: now.toISOString(), ...changeUntil(pools.flat(), now) };
}
