/*
 * The problems of each pool, hour by hour: missed events, kubelets in fallback, slow or hung PLEG, and time that nobody observed.
 */
import { int4, int4Array, text, timestamptz } from '../../store/schema/columns.ts';
import { nullable, type RowOf, rowOf, statement, word } from '../../store/statement.ts';
import readPoolHoursSql from './sql/readPoolHours.sql';
import readVersionChangesSql from './sql/readVersionChanges.sql';

export const HOUR_MS = 3_600_000;
export const MAX_SHOWN_POOLS = 200;

export const readPoolHours = statement(
  readPoolHoursSql,
  rowOf({
    ...{ cluster: text, pool: nullable(text), nodes: int4, silent: int4, pools: int4 },
    ...{ missed: int4Array, fallen: int4Array, slow: int4Array },
    ...{ knownSeconds: int4Array, watchedSeconds: int4Array },
  }),
);

/** Each list has a value for each slice of the period. */
export type PoolHours = RowOf<typeof readPoolHours>;

export const readVersionChanges = statement(
  readVersionChangesSql,
  rowOf({
    ...{ cluster: text, pool: nullable(text), at: timestamptz, what: word('kubelet', 'runtime') },
    ...{ before: text, after: text, nodes: int4 },
  }),
);

/** The beginning of the hour. */
export const hourOf = (at: Date): Date => new Date(Math.floor(at.getTime() / HOUR_MS) * HOUR_MS);
