/*
 * The settings that several commands have.
 */
import * as v from 'valibot';
import { ClusterName } from '../protocol/batch.ts';
import { LOG_LEVELS } from './log.ts';
import { momentOf } from './moment.ts';
import {
  BadValue,
  duration,
  internal,
  list,
  listenAddress,
  oneOf,
  optional,
  repeated,
  required,
  withDefault,
} from './settings.ts';

const clusterName = (raw: string): string => {
  if (!v.is(ClusterName, raw)) {
    throw new BadValue('must be lower case letters, digits, - and ., at most 63 characters');
  }
  return raw;
};

export const CLUSTER = required(
  'name',
  'name of the cluster, as its agents and controllers have it',
  clusterName,
);

/** For commands that read what several clusters have stored. */
export const CLUSTERS = repeated(
  optional(
    'name',
    'only this cluster, repeatable; without it, every cluster that the role may read',
    list(clusterName),
  ),
);

export const HTTP_ADDRESS = withDefault(
  'address',
  ':9465',
  'address of /metrics, /livez and /readyz',
  listenAddress,
);

export const logLevelFrom = (fallback: (typeof LOG_LEVELS)[number]) =>
  withDefault('level', fallback, `one of ${LOG_LEVELS.join(', ')}`, oneOf(...LOG_LEVELS));

/** A moment, as moment.ts says. Throws {@link BadValue}. */
export function moment(raw: string): Date {
  const at = momentOf(raw, Date.now());
  if (at === undefined)
    throw new BadValue(
      'must be a time such as 2026-11-22T03:12:00Z, 03:12 or -5d 03:12 (UTC), -90m, -2d or now',
    );
  return new Date(at);
}

/** An interval that only tests shorten. */
export const internalInterval = (fallback: string, describe: string) =>
  internal(withDefault('duration', fallback, describe, duration(100, 3_600_000)));
