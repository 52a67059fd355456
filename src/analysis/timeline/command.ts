/*
 * `plegwatch timeline NODE`: what happened on a node, in order of time.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { type StyledText, unstyled } from '../../platform/printable.ts';
import { rowsOf } from '../../store/cursor.ts';
import { bytewise, oneOf } from '../../store/expressions.ts';
import { notFound, requireClusters } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { nodes } from '../../store/schema/views.ts';
import { inUtc } from '../../store/statements.ts';
import type { Store } from '../../store/store.ts';
import { checkPeriod, type Period } from '../period.ts';
import { type NodeRow, readTimeline, type TimelineEntry, timelineRow } from './entry.ts';
import { type Cut, Story } from './story.ts';
import { storyText } from './text.ts';

export interface TimelineCommand extends Period {
  readonly store: Store;
  readonly node: string;
  readonly cluster: readonly string[] | undefined;
  readonly every: boolean;
  readonly limit: number;
  readonly output: 'text' | 'json';
}

type Lines = readonly (readonly StyledText[])[];

/** Returns the lines to print. Throws NOT_FOUND, or SETTING_INVALID for times or a node that do not say enough. */
export async function runTimeline(command: TimelineCommand): Promise<Lines> {
  const { store, from, to, every, limit, output } = command;
  checkPeriod('timeline', command);
  return store.transaction(async (sql) => {
    await sql.run(inUtc);
    const node = await findNode(sql, command);
    const params = [node.cluster, node.node, from, to];
    const entries = rowsOf(sql, { sql: readTimeline.text, params }, timelineRow);
    if (output === 'json') return jsonLines(node, command, entries);
    const story = new Story(limit, every);
    for await (const entry of entries) story.add(entry);
    return storyText(story, { node, from, to });
  });
}

/** The node that a command means. Throws as {@link runTimeline}. */
export function nodeOf(command: TimelineCommand): Promise<NodeRow> {
  checkPeriod('timeline', command);
  return command.store.transaction((sql) => findNode(sql, command));
}

async function findNode(sql: SqlRunner, { node: name, cluster: asked }: TimelineCommand): Promise<NodeRow> {
  await requireClusters(sql, asked);
  const { cluster, node, first_seen, last_seen } = nodes;
  const rows = await sql.query((db) =>
    db
      .select({ cluster, node, first_seen, last_seen })
      .from(nodes)
      .where(oneOf(cluster, asked ?? null))
      .orderBy(bytewise(cluster), bytewise(node)),
  );
  const all = rows.filter((row) => row.node === name);
  const [found, another] = all;
  if (found === undefined) throw notFound('node', name, [...new Set(rows.map((row) => row.node))]);
  if (another !== undefined) {
    const sentence = `Several clusters have a node ${name}: ${all.map((row) => row.cluster).join(', ')}.`;
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
  return unstyled(JSON.stringify(json, null, 2));
}
