/*
 * Texts from outside, made safe to store and to keep.
 */

/** A text without NUL and unpaired surrogates (Postgres can store neither), cut to `max` characters. */
export function cleanText(text: string, max: number): string {
  const cleaned = text.slice(0, max).toWellFormed().replaceAll('\0', '\uFFFD');
  // A copy: a slice keeps the whole text in memory, which may be megabytes of somebody else's.
  return text.length > max ? Buffer.from(cleaned).toString() : cleaned;
}
