/*
 * `plegwatch audit`: runs the rules over what is stored again and prints every finding that they would not make, and every one
 * that they would make and that is not there. It only reads.
 */

import { printable } from '../platform/printable.ts';
import { millis, mono } from '../protocol/units.ts';
import type { SqlRunner } from '../store/runner.ts';
import { type Difference, timeOf } from './difference.ts';
import { countOf, differenceText, timeAt } from './differenceText.ts';
import { auditEpoch } from './epochAudit.ts';
import { type AskedEpochs, type EpochRow, listEpochs, readEpoch } from './epochRecords.ts';
import { mayIdle, readOnly } from './statements.ts';
import { streamDifferences } from './streamRecords.ts';

/** Something stored does not follow from the other records. */
export const EXIT_DIFFERENCES = 3;

export interface AuditCommand extends AskedEpochs {
  readonly sql: SqlRunner;
  readonly print: (line: string) => void;
}

/** Read from this long before the requested time on: after a quarter of an hour everything is known that a verdict needs. */
const BEFORE = millis(32 * 60_000);
/** And until this long after it: a verdict may wait for lists for some minutes. */
const AFTER = millis(20 * 60_000);

/** Returns how many differences it printed. `sql` is a transaction that has just begun: agents go on recording meanwhile. */
export async function runAudit(command: AuditCommand): Promise<number> {
  const { sql, print } = command;
  await sql.run(readOnly);
  await sql.run(mayIdle);
  const audit = new Audit(command);
  for (const row of await listEpochs(sql, command)) await audit.audit(row);
  for (const [why, count] of audit.undecided)
    print(`Not decided: ${countOf(count, 'finding')}. Why: ${why}.`);
  const { confirmed, differences } = audit;
  const follow = confirmed === 1 ? 'follows' : 'follow';
  print(
    `${countOf(confirmed, 'finding')} ${follow} from the other records, ${countOf(differences, 'difference')}.`,
  );
  return differences;
}

class Audit {
  readonly #command: AuditCommand;
  readonly undecided = new Map<string, number>();
  confirmed = 0;
  differences = 0;

  constructor(command: AuditCommand) {
    this.#command = command;
  }

  async audit(row: EpochRow): Promise<void> {
    const { sql, from, to, print } = this.#command;
    const who = `${printable(row.node)}, epoch ${row.epoch}`;
    const since = from === undefined ? 0 : from.getTime() * 1000 - BEFORE;
    const until = to === undefined ? Number.POSITIVE_INFINITY : to.getTime() * 1000 + AFTER - row.started_us;
    const records = await readEpoch(sql, row, since);
    if (records === null) {
      print(`${who}: nothing to audit, no minute of it is stored.`);
      return;
    }
    const { stored, stream, holes } = records;
    const end = mono(Math.min(stored.end, until));
    const result = await auditEpoch({ ...stored, end });
    const found: Difference[] = [
      ...streamDifferences(stream),
      ...holes.map((hole) => ({ is: 'missing_minute', ...hole }) as const),
      ...result.differences,
    ].filter((difference) => this.#isAskedFor(difference, row));
    for (const difference of found) this.#print(difference, row);
    const times = `${timeAt(row, stored.start)} to ${timeAt(row, end)}`;
    const counted = `${countOf(result.confirmed, 'finding')} confirmed, ${countOf(found.length, 'difference')}`;
    print(`${who}, ${times}: ${counted}.`);
    this.confirmed += result.confirmed;
    this.differences += found.length;
    for (const [why, n] of result.undecided) this.undecided.set(why, (this.undecided.get(why) ?? 0) + n);
  }

  #isAskedFor(difference: Difference, { started_us }: EpochRow): boolean {
    const { from, to } = this.#command;
    const at = (timeOf(difference) + started_us) / 1000;
    return at >= (from?.getTime() ?? at) && at <= (to?.getTime() ?? at);
  }

  #print(difference: Difference, row: EpochRow): void {
    const { sentence, sql } = differenceText(difference, row);
    this.#command.print(`${printable(row.node)}: ${sentence}`);
    this.#command.print(`  ${sql};`);
  }
}
