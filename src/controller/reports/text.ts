/*
 * Fits texts of agents to the bounds of the resource: the API server rejects a whole report for one value that violates a bound.
 */
import { printable } from '../../platform/printable.ts';
import { MAX_WORD, WORDS } from './crdSchema.ts';

/** A printable text of at most `max` characters; undefined for an empty text. */
export function cut(text: string | null, max: number): string | undefined {
  if (text === null || text === '') return undefined;
  const characters = [...printable(text)];
  return characters.length <= max ? characters.join('') : `${characters.slice(0, max - 1).join('')}…`;
}

/** An identifier such as `Evented` or `StreamBroke`; undefined for anything else. */
export const pascalWord = (text: string | null) => wordOf('PascalCase', text);
/** An identifier such as `out_of_order`; undefined for anything else. */
export const snakeWord = (text: string | null) => wordOf('snake_case', text);
/** An identifier such as `STOPPED`; undefined for anything else. */
export const upperWord = (text: string | null) => wordOf('UPPER_CASE', text);

/** A time in the format of the API, to the second. One that it cannot express, because a clock was absurd, is the last that it can. */
export function timestamp(at: string): string {
  const ms = Date.parse(at);
  return `${new Date(ms > 0 && ms < LAST_MS ? ms : LAST_MS).toISOString().slice(0, 19)}Z`;
}

const LAST_MS = Date.parse('9999-12-31T23:59:59Z');

/** The size of a value as JSON. */
export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value), 'utf8');

/** Without the fields that are undefined. */
export function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

/** Without the fields that are empty objects. */
export const withoutEmpty = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => JSON.stringify(value) !== '{}'));

function wordOf(kind: keyof typeof WORDS, text: string | null): string | undefined {
  return text !== null && text.length <= MAX_WORD && WORDS[kind].test(text) ? text : undefined;
}
