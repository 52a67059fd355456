/*
 * `plegwatch finding ID`: what was due, what was received and listed around it, and why nothing else explains it.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { inEach, notFound, storesOf } from '../../store/notFound.ts';
import { inUtc } from '../../store/statements.ts';
import type { ReadStore } from '../../store/store.ts';
import type { FINDING_OUTPUTS } from '../settings.ts';
import { type Finding, onlyFinding, readFinding } from './finding.ts';
import { findingMarkdown } from './markdown.ts';
import { lagOf, meaningOf, timesOf } from './sentences.ts';
import { findingText } from './text.ts';

interface AskedFinding {
  readonly store: ReadStore;
  readonly id: string;
  readonly cluster: readonly string[] | undefined;
  readonly node: string | undefined;
}

export interface FindingCommand extends AskedFinding {
  readonly output: (typeof FINDING_OUTPUTS)[number];
  readonly withNames: boolean;
}

/** Returns what is printed. Throws NOT_FOUND, or SETTING_INVALID if several nodes have a finding of this id. */
export async function runFinding(command: FindingCommand): Promise<string> {
  const read = await findingOf(command);
  if (command.output === 'markdown') return findingMarkdown(read, command.withNames);
  if (command.output === 'text') return findingText(read);
  return `${JSON.stringify(explained(read), null, 2)}\n`;
}

/** The columns of a finding, what they mean in words, and its evidence. */
export const explained = ({ finding, evidence }: Finding) => ({
  ...{ ...finding, meaning: meaningOf(finding), times: timesOf(finding), status_lag: lagOf(finding) },
  evidence,
});

/** The finding that a command means. Throws as {@link runFinding}. */
export async function findingOf({ store, id, cluster, node }: AskedFinding): Promise<Finding> {
  const parts = await inEach(await storesOf(store, cluster), (part) =>
    part.transaction(async (sql) => {
      await sql.run(inUtc);
      return readFinding(sql, id, cluster ?? null, node);
    }),
  );
  const only = onlyFinding(
    parts,
    (sentence) => new PlegwatchError('SETTING_INVALID', sentence, 'Choose one with --cluster and --node.'),
  );
  if (only === undefined) throw notFound('finding', id, []);
  return only;
}
