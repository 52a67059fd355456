/*
 * Texts from outside, made safe to store and to keep. Without schemas: the reader process loads this file.
 */

/** The longest container or sandbox id that is accepted, in characters; runtimes use 64 hexadecimal digits. */
export const MAX_ID_LENGTH = 256;
/** The longest name (pod, namespace, container) that is accepted, in characters; the API server allows 253. */
export const MAX_NAME_LENGTH = 512;

/** A text without NUL and unpaired surrogates (Postgres can store neither), cut to `max` characters. */
export function cleanText(text: string, max: number): string {
  const cleaned = text.slice(0, max).toWellFormed().replaceAll('\0', '\uFFFD');
  // A copy: a slice keeps the whole text in memory, which may be megabytes of somebody else's.
  return text.length > max ? Buffer.from(cleaned).toString() : cleaned;
}
