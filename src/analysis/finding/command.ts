/*
 * `plegwatch finding ID`: what was due, what was received and listed around it, and why nothing else explains it.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { inUtc } from '../../store/statements.ts';
import type { Store } from '../../store/store.ts';
import type { FINDING_OUTPUTS } from '../settings.ts';
import { type Finding, readFindings, severalNodes, withEvidence } from './finding.ts';
import { findingMarkdown } from './markdown.ts';
import { lagOf, meaningOf, timesOf } from './sentences.ts';
import { findingText } from './text.ts';

export interface FindingCommand {
  readonly store: Store;
  readonly id: string;
  readonly cluster: readonly string[] | undefined;
  readonly node: string | undefined;
  readonly output: (typeof FINDING_OUTPUTS)[number];
  readonly withNames: boolean;
}

/** Returns what is printed. Throws NOT_FOUND, or SETTING_INVALID if several nodes have a finding of this id. */
export async function runFinding(command: FindingCommand): Promise<string> {
  const read = await findingOf(command);
  if (command.output === 'markdown') return findingMarkdown(read, command.withNames);
  if (command.output === 'text') return findingText(read);
  const { finding, evidence } = read;
  const sentences = { meaning: meaningOf(finding), times: timesOf(finding), status_lag: lagOf(finding) };
  return `${JSON.stringify({ ...finding, ...sentences, evidence }, null, 2)}\n`;
}

/** The finding that a command means. Throws as {@link runFinding}. */
export const findingOf = (command: FindingCommand): Promise<Finding> =>
  command.store.transaction((sql) => readFinding(sql, command));

async function readFinding(sql: SqlRunner, { id, cluster, node }: FindingCommand): Promise<Finding> {
  await sql.run(inUtc);
  const found = await readFindings(sql, id, cluster ?? null, node);
  const [finding, another] = found;
  if (finding === undefined) throw notFound('finding', id, []);
  if (another !== undefined) {
    throw new PlegwatchError('SETTING_INVALID', severalNodes(found), 'Choose one with --cluster and --node.');
  }
  return withEvidence(sql, finding);
}
