/*
 * GET /api/versions: how many events are missed by versions, and which pools are ready for Evented PLEG.
 *
 * Both read a week of hours, which takes long for a very large fleet: they are read at once, and one that takes too long is left out, and says so. The answer to the same period, to the minute, is remembered for a minute, and readiness for all periods: a page that stays open must not keep Postgres
 * busy.
 */
import { MAX_POOLS, NO_NODE, orderedPools, readReadiness } from '../../analysis/readiness/readiness.ts';
import type { Statement } from '../../store/statement.ts';
import type { PoolReadiness, VersionsAnswer, WhyEmpty } from '../api.ts';
import { type Period, parametersOf, periodIn } from '../parameters.ts';
import { OF_A_MINUTE, remembered, toMinutes } from '../remembered.ts';
import { RequestError } from '../requestError.ts';
import { databaseRefusal, type Reader, readEach } from './reader.ts';
import { readMissRates } from './statements.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 400;
const MAX_ROWS = 2_000;
const NOTHING_DECIDED =
  'No transition was decided in this period: no agent watched a stream, or its minutes are deleted.';
const TOO_SLOW = 'Postgres did not answer within 15 s: there is too much to add. Choose a shorter period.';

interface Part<T> {
  readonly rows: readonly T[];
  readonly empty: WhyEmpty;
}

export function versionsAnswers(reader: Reader): (query: URLSearchParams) => Promise<VersionsAnswer> {
  const answers = remembered<VersionsAnswer>(OF_A_MINUTE);
  const readiness = remembered<Part<PoolReadiness>>({ ...OF_A_MINUTE, max: 1 });
  const ready = () =>
    readiness.ask('', () => part(reader, readReadiness, [reader.clusters, MAX_POOLS], NO_NODE, orderedPools));
  return async (query) => {
    const period = periodIn(parametersOf(query, ['from', 'to', 'last']), 7 * DAY_MS, MAX_DAYS, new Date());
    return answers.ask(toMinutes(period), () => versionsAnswer(reader, period, ready()));
  };
}

async function versionsAnswer(
  reader: Reader,
  { from, to }: Period,
  ready: Promise<Part<PoolReadiness>>,
): Promise<VersionsAnswer> {
  const period = [reader.clusters, from, to, MAX_ROWS];
  const [missRates, readiness] = await Promise.all([
    part(reader, readMissRates, period, NOTHING_DECIDED, (parts) => parts.flat()),
    ready,
  ]);
  return {
    now: new Date().toISOString(),
    ...{ from: from.toISOString(), to: to.toISOString() },
    ...{ missRates: missRates.rows, readiness: readiness.rows },
    empty: { missRates: missRates.empty, readiness: readiness.empty },
  };
}

async function part<T>(
  reader: Reader,
  statement: Statement<T>,
  values: readonly unknown[],
  empty: string,
  merged: (parts: readonly T[][]) => T[],
): Promise<Part<T>> {
  try {
    const rows = merged(await readEach(reader, async (sql) => (await sql.run(statement, values)).rows));
    return { rows, empty: rows.length === 0 ? empty : null };
  } catch (error) {
    const refusal = error instanceof RequestError ? error : databaseRefusal(error);
    if (refusal?.code !== 'TOO_SLOW') throw error;
    return { rows: [], empty: TOO_SLOW };
  }
}
