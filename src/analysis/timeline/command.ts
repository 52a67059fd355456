/*
 * `plegwatch timeline NODE`: what happened on a node, in order of time.
 */

import { PlegwatchError } from '../../platform/errors.ts';
import type { StyledText } from '../../platform/printable.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import listClusters from '../../store/sql/listClusters.sql';
import type { Store } from '../../store/store.ts';
import { fetchRows } from '../cursor.ts';
import type { NodeRow, TimelineEntry } from './entry.ts';
import findNodeSql from './sql/findNode.sql';
import readTimeline from './sql/readTimeline.sql';
import { type Cut, Story } from './story.ts';
import { storyText } from './text.ts';

export interface TimelineCommand {
  readonly store: Store;
  readonly node: string;
  readonly cluster: readonly string[] | undefined;
  readonly from: Date;
  readonly to: Date;
  readonly every: boolean;
  readonly limit: number;
  readonly output: 'text' | 'json';
}

type Lines = readonly (readonly StyledText[])[];

/** Returns the lines to print. Throws NOT_FOUND, or SETTING_INVALID for times or a node that do not say enough. */
export async function runTimeline(command: TimelineCommand): Promise<Lines> {
  const { store, from, to, every, limit, output } = command;
  checkPeriod(command);
  return store.transaction(async (sql) => {
    // The function writes times into its texts.
    await sql.run({ text: "SET LOCAL TIME ZONE 'UTC'" });
    const node = await findNode(sql, command);
    await sql.run({ text: readTimeline }, [node.cluster, node.node, from, to]);
    const entries = fetchRows<TimelineEntry>(sql, 'entries');
    if (output === 'json') return jsonLines(node, command, entries);
    const story = new Story(limit, every);
    for await (const entry of entries) story.add(entry);
    return storyText(story, { node, from, to });
  });
}

/** The node that a command means. Throws as {@link runTimeline}. */
export function nodeOf(command: TimelineCommand): Promise<NodeRow> {
  checkPeriod(command);
  return command.store.transaction((sql) => findNode(sql, command));
}

function checkPeriod({ from, to }: TimelineCommand): void {
  if (from < to) return;
  const [first, second] = [from, to].map((at) => at.toISOString());
  const sentence = `--from (${first}) must be before --to (${second}).`;
  throw new PlegwatchError('SETTING_INVALID', sentence, 'See plegwatch timeline --help.');
}

async function findNode(sql: SqlRunner, { node, cluster }: TimelineCommand): Promise<NodeRow> {
  const clusters = await sql.run<{ name: string }>({ text: listClusters });
  const names = clusters.rows.map(({ name }) => name);
  const missing = cluster?.find((name) => !names.includes(name));
  if (missing !== undefined) throw notFound('cluster', missing, names);
  const { rows } = await sql.run<NodeRow>({ text: findNodeSql }, [cluster ?? null]);
  const [found, another] = rows.filter((row) => row.node === node);
  if (found === undefined) throw notFound('node', node, [...new Set(rows.map((row) => row.node))]);
  if (another !== undefined) {
    const both = rows.filter((row) => row.node === node).map((row) => row.cluster);
    const sentence = `Several clusters have a node ${node}: ${both.join(', ')}.`;
    throw new PlegwatchError('SETTING_INVALID', sentence, 'Choose one with --cluster.');
  }
  return found;
}

async function jsonLines(
  { cluster, node }: NodeRow,
  { from, to, limit }: TimelineCommand,
  read: AsyncIterable<TimelineEntry>,
): Promise<Lines> {
  const entries: TimelineEntry[] = [];
  let cut: Cut | undefined;
  for await (const entry of read) {
    if (entries.length < limit) entries.push(entry);
    else {
      cut ??= { entries: 0, from: entry.at };
      cut.entries += 1;
    }
  }
  const json = { cluster, node, from: from.toISOString(), to: to.toISOString(), entries, cut: cut ?? null };
  return JSON.stringify(json, null, 2)
    .split('\n')
    .map((text) => [{ text }]);
}
