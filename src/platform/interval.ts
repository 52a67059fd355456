/*
 * Intervals that nobody has to set in the field, and that a test of a whole system needs to be short: they are no flags, only
 * variables, `PLEGWATCH_INTERVAL_ROUND=4s`. Listed in test/torture/README.md.
 */

import type { Micros } from '../protocol/units.ts';
import { PlegwatchError } from './errors.ts';
import { BadValue, duration } from './settings.ts';

/**
 *   ROUND        agent: how often everything is asked for again
 *   PAST         agent: how often it asks about epochs of which it has no record left
 *   STALL        agent: how long an answer is waited for before what was sent is sent again
 *   IDLE         agent: how often it looks up while nothing is to be sent
 *   SWEEP        agent: how often old segments are looked for
 *   RETRY        both: the longest pause between two tries to reach Redis
 *   FLOW         controller: how often the flow settings are told
 *   PATIENCE     controller: how long a batch waits for Postgres before it is put aside
 *   ASIDE        controller: for how long it is put aside; after a fault of ours too
 *   LOCK         controller: after this a batch of a worker that died is taken up by another
 */
export type IntervalName =
  | 'ROUND'
  | 'PAST'
  | 'STALL'
  | 'IDLE'
  | 'SWEEP'
  | 'RETRY'
  | 'FLOW'
  | 'PATIENCE'
  | 'ASIDE'
  | 'LOCK';

const read = duration(100, 3_600_000);

/** The interval of that name, or what it is where nobody says otherwise. Throws SETTING_INVALID. */
export function interval(name: IntervalName, otherwise: Micros): Micros {
  const variable = `PLEGWATCH_INTERVAL_${name}`;
  const raw = process.env[variable];
  if (raw === undefined) return otherwise;
  try {
    return read(raw);
  } catch (error) {
    if (!(error instanceof BadValue)) throw error;
    throw new PlegwatchError('SETTING_INVALID', `${variable} ${error.message}`, 'Leave it out.');
  }
}
