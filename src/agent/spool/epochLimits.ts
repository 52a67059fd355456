/*
 * When an epoch is full: long before a seq, an offset or the number of a context reaches what an envelope and its columns can hold.
 */
import { type Micros, millis } from '../../protocol/units.ts';

/** Half of the seqs of an int4. */
export const MAX_EPOCH_RECORDS = 2 ** 30;
/** A record's offset may be 400 days. */
export const MAX_EPOCH_AGE: Micros = millis(90 * 86_400_000);
/** Half of the contexts of an envelope. */
export const MAX_EPOCH_CONTEXTS = 500_000;

export interface EpochExtent {
  readonly records: number;
  readonly contexts: number;
  readonly age: Micros;
}

export const isEpochFull = (
  { records, contexts, age }: EpochExtent,
  maxAge: Micros = MAX_EPOCH_AGE,
): boolean => records >= MAX_EPOCH_RECORDS || contexts >= MAX_EPOCH_CONTEXTS || age >= maxAge;
