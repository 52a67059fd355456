/*
 * `plegwatch finding ID`: what was due, what was received and listed around it, and why nothing else explains it.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { inUtc } from '../../store/statements.ts';
import type { ReadStore } from '../../store/store.ts';
import type { FINDING_OUTPUTS } from '../settings.ts';
import { type Finding, readFindings, severalNodes, withEvidence } from './finding.ts';
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
export const findingOf = (command: AskedFinding): Promise<Finding> =>
  command.store.transaction((sql) => readFinding(sql, command));

async function readFinding(sql: SqlRunner, { id, cluster, node }: AskedFinding): Promise<Finding> {
  await sql.run(inUtc);
  const found = await readFindings(sql, id, cluster ?? null, node);
  const [finding, another] = found;
  if (finding === undefined) throw notFound('finding', id, []);
  if (another !== undefined) {
    throw new PlegwatchError('SETTING_INVALID', severalNodes(found), 'Choose one with --cluster and --node.');
  }
  return withEvidence(sql, finding);
}
