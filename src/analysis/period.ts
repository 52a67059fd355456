/*
 * The period that a command is asked about.
 */
import { PlegwatchError } from '../platform/errors.ts';

export interface Period {
  readonly from: Date;
  readonly to: Date;
}

/** Throws SETTING_INVALID unless it has a length. */
export function checkPeriod({ from, to }: Period): void {
  if (from < to) return;
  const [first, second] = [from, to].map((at) => at.toISOString());
  const sentence = `--from (${first}) must be before --to (${second}).`;
  throw new PlegwatchError('SETTING_INVALID', sentence, 'Correct one of them.');
}
