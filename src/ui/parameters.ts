/*
 * The parameters of a request. Each is given once; one that the path does not have is refused, so that a typo is not ignored.
 */
import { SEARCH_NEEDS, searchText } from '../analysis/find/limits.ts';
import { badParameter, RequestError } from './requestError.ts';

/** Longer than any name in Kubernetes. */
const MAX_NAME = 253;
/** From the year 1000 on: Postgres has no year 0. */
const TIME = /^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?Z$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DAY_MS = 86_400_000;

export type Parameters = Readonly<Record<string, string | undefined>>;

/** Throws BAD_PARAMETER for one that is not in `names`, or given twice. */
export function parametersOf(query: URLSearchParams, names: readonly string[]): Parameters {
  for (const name of query.keys()) {
    if (!names.includes(name)) {
      const cure = names.length === 0 ? 'This path has none.' : `This path has: ${names.join(', ')}.`;
      throw new RequestError('BAD_PARAMETER', 'There is a parameter that is not known.', cure);
    }
    if (query.getAll(name).length > 1) throw badParameter(name, 'given once');
  }
  return Object.fromEntries(query);
}

/** Undefined if it is not given. */
export function nameIn(parameters: Parameters, name: string): string | undefined {
  const value = parameters[name];
  if (value === undefined) return undefined;
  if (value === '' || value.length > MAX_NAME || value.includes('\0')) {
    throw badParameter(name, `a name of 1 to ${MAX_NAME} characters`);
  }
  return value;
}

export function requiredName(parameters: Parameters, name: string): string {
  const value = nameIn(parameters, name);
  if (value === undefined) throw badParameter(name, 'given');
  return value;
}

/** One of these words. */
export function wordIn<W extends string>(parameters: Parameters, name: string, words: readonly W[]): W {
  const word = words.find((each) => each === parameters[name]);
  if (word === undefined) throw badParameter(name, `one of ${words.join(', ')}`);
  return word;
}

export function idIn(parameters: Parameters, name: string): string {
  const value = parameters[name];
  if (value === undefined || !UUID.test(value)) throw badParameter(name, 'the id of a finding');
  return value.toLowerCase();
}

export function searchIn(parameters: Parameters, name: string): string {
  const text = searchText(requiredName(parameters, name));
  if (text === null) throw badParameter(name, SEARCH_NEEDS);
  return text;
}

/** A whole number of days. */
export function daysIn({ days }: Parameters, usual: number, max: number): number {
  if (days === undefined) return usual;
  if (!/^[1-9]\d{0,2}$/.test(days) || Number(days) > max)
    throw badParameter('days', `a number from 1 to ${max}`);
  return Number(days);
}

export interface Period {
  readonly from: Date;
  readonly to: Date;
}

/** From `from` until `to`; without them the last `last` seconds, else the last `defaultMs`, until now. */
export function periodIn(parameters: Parameters, defaultMs: number, maxDays: number, now: Date): Period {
  const lengthMs = lengthIn(parameters) ?? defaultMs;
  const to = timeIn(parameters, 'to') ?? now;
  const from = timeIn(parameters, 'from') ?? new Date(to.getTime() - lengthMs);
  if (from >= to) throw badParameter('from', 'before to');
  if (to.getTime() - from.getTime() > maxDays * DAY_MS)
    throw badParameter('from', `at most ${maxDays} days before to`);
  return { from, to };
}

function lengthIn(parameters: Parameters): number | undefined {
  const { last, from, to } = parameters;
  if (last === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(last)) throw badParameter('last', 'a number of seconds');
  if (from !== undefined || to !== undefined) throw badParameter('last', 'given without from and to');
  return Number(last) * 1000;
}

function timeIn(parameters: Parameters, name: string): Date | undefined {
  const value = parameters[name];
  if (value === undefined) return undefined;
  const at = new Date(TIME.test(value) ? value : Number.NaN);
  if (Number.isNaN(at.getTime())) throw badParameter(name, 'a time such as 2026-11-22T03:12:00Z');
  return at;
}
