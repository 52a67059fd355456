/*
 * Refused input as text to store. A parser reads JSON that is nested deeper than a writer can follow; such input gets a fixed
 * text, because an input that throws would be redelivered for ever.
 */
const TOO_DEEP = 'nested too deeply to be written';

export function inputText(input: unknown): string {
  try {
    return JSON.stringify(input) ?? 'undefined';
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    throw error;
  }
}
