/*
 * `plegwatch timeline NODE`: what happened on a node, in order of time.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { type StyledText, unstyled } from '../../platform/printable.ts';
import { rowsOf } from '../../store/cursor.ts';
import { groupsHave, nodesNamed } from '../../store/notFound.ts';
import { inUtc } from '../../store/statements.ts';
import type { ReadStore } from '../../store/store.ts';
import { checkPeriod, type Period } from '../period.ts';
import { type NodeRow, readTimeline, type TimelineEntry, timelineRow } from './entry.ts';
import { type Cut, Story } from './story.ts';
import { storyText } from './text.ts';

interface AskedTimeline extends Period {
  readonly store: ReadStore;
  readonly node: string;
  readonly cluster: readonly string[] | undefined;
  /** The maximum number of lines or entries. */
  readonly limit: number;
}

export interface TimelineCommand extends AskedTimeline {
  readonly every: boolean;
  readonly output: 'text' | 'json';
}

type Lines = readonly (readonly StyledText[])[];

/** Returns the lines to print. Throws NOT_FOUND, or SETTING_INVALID for times or a node that do not say enough. */
export async function runTimeline(command: TimelineCommand): Promise<Lines> {
  if (command.output === 'json') return unstyled(JSON.stringify(await entriesOf(command), null, 2));
  const { from, to } = command;
  const { node, story } = await storyOf(command, command.every);
  return storyText(story, { node, from, to });
}

/** The timeline as few lines. Throws as {@link runTimeline}. */
export function storyOf(
  asked: AskedTimeline,
  every: boolean,
): Promise<{ readonly node: NodeRow; readonly story: Story }> {
  return read(asked, async (node, entries) => {
    const story = new Story(asked.limit, every);
    for await (const entry of entries) story.add(entry);
    return { node, story };
  });
}

async function read<T>(
  asked: AskedTimeline,
  work: (node: NodeRow, entries: AsyncIterable<TimelineEntry>) => Promise<T>,
): Promise<T> {
  const { from, to } = asked;
  const { store, ...node } = await nodeOf(asked);
  return store.transaction(async (sql) => {
    await sql.run(inUtc);
    const params = [node.cluster, node.node, from, to];
    return work(node, rowsOf(sql, { sql: readTimeline.text, params }, timelineRow));
  });
}

/** The node that a command means, and the store that has it. Throws as {@link runTimeline}. */
export async function nodeOf(asked: AskedTimeline): Promise<NodeRow & { readonly store: ReadStore }> {
  checkPeriod(asked);
  const { store, node: name, cluster } = asked;
  const all = await nodesNamed(store, name, cluster);
  const [found, another] = all;
  if (another === undefined) return found;
  const clusters = [...new Set(all.map((row) => row.cluster))];
  if (clusters.length > 1) {
    const sentence = `Several clusters have a node ${name}: ${clusters.join(', ')}.`;
    throw new PlegwatchError('SETTING_INVALID', sentence, 'Choose one with --cluster.');
  }
  const groups = all.map((row) => row.store);
  throw new PlegwatchError(
    'SETTING_INVALID',
    groupsHave(groups, `a node ${name} of the cluster ${found.cluster}`),
    'Set --database-url (PLEGWATCH_DATABASE_URL) to the database of one of them.',
  );
}

/** The timeline as rows of the function. Throws as {@link runTimeline}. */
export function entriesOf(asked: AskedTimeline) {
  const { from, to, limit } = asked;
  return read(asked, async ({ cluster, node }, all) => {
    const entries: TimelineEntry[] = [];
    let cut: Cut | null = null;
    for await (const entry of all) {
      if (entries.length < limit) entries.push(entry);
      else {
        cut ??= { entries: 0, from: entry.at };
        cut.entries += 1;
      }
    }
    return { cluster, node, from: from.toISOString(), to: to.toISOString(), entries, cut };
  });
}
