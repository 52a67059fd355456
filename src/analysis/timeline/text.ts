/*
 * A story as lines for a terminal: a heading for each day, a time to the millisecond, what it is about, and a sentence.
 */
import type { Style, StyledText } from '../../platform/printable.ts';
import { toSecond } from '../words.ts';
import type { NodeRow } from './entry.ts';
import type { Story, StoryLine } from './story.ts';

interface Shown {
  readonly node: NodeRow;
  readonly from: Date;
  readonly to: Date;
}

const KIND_WIDTH = 11;
const STYLES: Readonly<Record<string, Style>> = {
  routine: 'dim',
  event: 'dim',
  change: 'dim',
  status: 'yellow',
  hang: 'red',
  gap: 'yellow',
  mode: 'magenta',
  session: 'cyan',
  agent: 'cyan',
};

export function storyText({ lines, cut }: Story, { node, from, to }: Shown): StyledText[][] {
  const title = `${node.node}, cluster ${node.cluster}, ${shortTime(from)} to ${shortTime(to)} UTC`;
  const text: StyledText[][] = [[{ text: title, style: 'bold' }]];
  if (lines.length === 0) text.push([{ text: nothingOf(node) }]);
  let day = '';
  for (const line of lines) {
    if (line.at.slice(0, 10) !== day) {
      day = line.at.slice(0, 10);
      text.push([], [{ text: day, style: 'bold' }]);
    }
    const kind = line.kind === 'routine' ? 'containers' : line.kind;
    text.push([
      { text: `${line.at.slice(11, 23)}  `, style: 'dim' },
      { text: kind.padEnd(KIND_WIDTH), style: styleOf(line) },
      { text: line.text(), style: line.kind === 'routine' ? 'dim' : undefined },
    ]);
  }
  if (cut !== undefined) {
    const what = `${cut.entries} more entries from ${cut.from.replace('T', ' ').slice(0, 19)} on are not shown.`;
    text.push(
      [],
      [{ text: `${what} Set --limit higher, or --from and --to closer together.`, style: 'yellow' }],
    );
  }
  return text;
}

function styleOf({ kind, what }: StoryLine): Style | undefined {
  if (kind === 'finding') return what.startsWith('missed') ? 'red' : 'yellow';
  if (kind === 'condition') return what === 'Ready=True' ? 'green' : 'red';
  return STYLES[kind];
}

function nothingOf({ first_seen, last_seen }: NodeRow): string {
  if (first_seen === null || last_seen === null)
    return 'Nothing is stored of this node: it never had an agent.';
  return `Nothing is stored of this period. The node's evidence begins at ${toSecond(first_seen)} and ends at ${toSecond(last_seen)}.`;
}
const shortTime = (at: Date): string => at.toISOString().slice(0, 19).replace('T', ' ');
