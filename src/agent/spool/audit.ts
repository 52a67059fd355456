/*
 * The audit: a second file that gets every record before the spool does. test/torture compares it with what is stored.
 *
 *   epoch · space · the line as it is written to the spool
 */
import { openSync, writeSync } from 'node:fs';

export type SpoolAudit = (epoch: string, line: string) => void;

/** Opens the audit file. Without a file nothing is audited. */
export function openAudit(file: string | undefined): SpoolAudit {
  if (file === undefined) return () => undefined;
  const audit = openSync(file, 'a');
  return (epoch, line) => void writeSync(audit, `${epoch} ${line}`);
}
