/*
 * What arrived, as text to keep. JSON that a parser reads may be nested deeper than a writer can follow; that is told in its
 * place, and never thrown: an input that throws would come again for ever.
 */
const TOO_DEEP = 'nested too deeply to be written down';

export function asText(input: unknown): string {
  try {
    return JSON.stringify(input) ?? 'undefined';
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    throw error;
  }
}
