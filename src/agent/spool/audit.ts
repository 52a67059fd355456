/*
 * The audit: every record as it is about to be written to the spool, told to a second file before the spool hears of it.
 * For the loss checker (torture/), which compares it with what the store has. Without PLEGWATCH_AUDIT_FILE there is none.
 *
 *   epoch · space · the line as it goes into the spool
 */
import { openSync, writeSync } from 'node:fs';

export type Audit = (epoch: string, line: string) => void;

/** Opens the file that the environment names; does nothing where it names none. */
export function openAudit(file = process.env['PLEGWATCH_AUDIT_FILE']): Audit {
  if (file === undefined) return () => undefined;
  const audit = openSync(file, 'a');
  return (epoch, line) => void writeSync(audit, `${epoch} ${line}`);
}
