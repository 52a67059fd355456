/*
 * The audit: every record as it is about to be written to the spool, told to a second file before the spool hears of it.
 * For the loss checker (torture/), which compares it with what the store has. Without `auditFile` there is none.
 *
 *   epoch · space · the line as it goes into the spool
 */
import { openSync, writeSync } from 'node:fs';

export type Audit = (epoch: string, line: string) => void;

/** Opens the file; without one the audit does nothing. */
export function openAudit(file: string | undefined): Audit {
  if (file === undefined) return () => undefined;
  const audit = openSync(file, 'a');
  return (epoch, line) => void writeSync(audit, `${epoch} ${line}`);
}
