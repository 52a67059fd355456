/*
 * Text of agents, made to fit the bounds of the resource: cut, and words checked against their pattern. A value that would
 * break a bound would make the API server refuse the whole report.
 */

/** The first `max` characters; undefined for an empty text. A character is never cut in half. */
export function cut(text: string | null, max: number): string | undefined {
  if (text === null || text === '') return undefined;
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`;
}

/** A word such as `Evented` or `StreamBroke`; undefined for anything else. */
export const pascalWord = (text: string | null): string | undefined =>
  matching(text, /^[A-Z][A-Za-z0-9]{0,62}$/);

/** A word such as `out_of_order`; undefined for anything else. */
export const snakeWord = (text: string | null): string | undefined =>
  matching(text, /^[a-z][a-z0-9_]{0,62}$/);

/** A word such as `STOPPED`; undefined for anything else. */
export const upperWord = (text: string | null): string | undefined =>
  matching(text, /^[A-Z][A-Z0-9_]{0,62}$/);

/** A time to the second, as the API has them. */
export function timestamp(at: Date | string): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** The bytes of a value as JSON. */
export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value), 'utf8');

/** The object without the fields that are undefined. */
export function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

function matching(text: string | null, pattern: RegExp): string | undefined {
  return text !== null && pattern.test(text) ? text : undefined;
}
