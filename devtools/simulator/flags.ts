/*
 * Readers for the values of the simulator's flags: probabilities, pairs such as `0.01:3s`, names of statuses and oddities.
 */
import { status } from '@grpc/grpc-js';
import { BadValue, duration } from '../../src/platform/settings.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { ODDITY_NAMES } from './oddities.ts';
import type { OddityProbabilities } from './podScript.ts';

const HOUR_MS = 3_600_000;
type FlagReader<T> = (raw: string) => T;

export function decimal(min: number, max: number): FlagReader<number> {
  return (raw) => {
    const value = Number(raw);
    if (raw.trim() === '' || !(value >= min && value <= max)) {
      throw new BadValue(`must be a number from ${min} to ${max}`);
    }
    return value;
  };
}

export const probability = decimal(0, 1);

/** A duration in milliseconds. */
export const milliseconds: FlagReader<number> = (raw) => duration(1, 24 * HOUR_MS)(raw) / 1000;

/** One of a list of names. */
export function nameOf<const T extends string>(names: readonly T[]): FlagReader<T> {
  return (raw) => {
    const found = names.find((name) => name === raw);
    if (found === undefined) throw new BadValue(`must be one of ${names.join(', ')}`);
    return found;
  };
}

/** Two values separated by a colon. */
export function pair<A, B>(first: FlagReader<A>, second: FlagReader<B>): FlagReader<readonly [A, B]> {
  return (raw) => {
    const colon = raw.indexOf(':');
    if (colon < 0) throw new BadValue('must be two values separated by a colon');
    return [first(raw.slice(0, colon)), second(raw.slice(colon + 1))];
  };
}

/** The same with an optional second value. */
export function pairOr<A, B>(
  first: FlagReader<A>,
  second: FlagReader<B>,
  without: B,
): FlagReader<readonly [A, B]> {
  return (raw) => (raw.includes(':') ? pair(first, second)(raw) : [first(raw), without]);
}

/** A gRPC status by its name. */
export const statusCode: FlagReader<status> = (raw) => {
  const found = Object.entries(status).find(([name, code]) => name === raw && typeof code === 'number');
  if (found === undefined) throw new BadValue('must be the name of a gRPC status, such as UNAVAILABLE or OK');
  return Number(found[1]);
};

export const eventTypes: FlagReader<readonly EventType[]> = (raw) =>
  raw.split(',').map((name) => {
    const type = EVENT_TYPES.find((each) => each === name.trim());
    if (type === undefined) throw new BadValue(`must be a list of ${EVENT_TYPES.join(', ')}`);
    return type;
  });

/** `failed-start:0.1,regression:0.05` */
export const odds: FlagReader<OddityProbabilities> = (raw) => {
  const entries = raw.split(',').map((each) => pair(nameOf(ODDITY_NAMES), probability)(each.trim()));
  if (entries.reduce((sum, [, chance]) => sum + chance, 0) > 1) {
    throw new BadValue('must have probabilities whose sum is at most 1');
  }
  return Object.fromEntries(entries);
};

/** `10s:-1h`: the time after the start, and the step. */
export const wallStep: FlagReader<{ readonly afterMs: number; readonly byMs: number }> = (raw) => {
  const signed: FlagReader<number> = (by) =>
    by.startsWith('-') ? -milliseconds(by.slice(1)) : milliseconds(by.replace('+', ''));
  const [afterMs, byMs] = pair(milliseconds, signed)(raw);
  return { afterMs, byMs };
};
