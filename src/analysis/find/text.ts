/*
 * The result of a search, for a terminal: each thing with where it is, its findings, and the commands that say more.
 */
import type { StyledText } from '../../platform/printable.ts';
import { PLEGWATCH } from '../finding/checks.ts';
import { containerNameOf, titleOf } from '../finding/sentences.ts';
import { quoted, toSecond } from '../words.ts';
import type { Found, FoundFinding } from './search.ts';

type Line = readonly StyledText[];

/** The timeline shows what came before a time rather than what came after it. */
const [BEFORE_MS, AFTER_MS] = [600_000, 300_000];

export function findText(found: readonly Found[], isCut: boolean): Line[] {
  const lines = found.flatMap((each, at) => [...(at === 0 ? [] : [[]]), ...linesOf(each)]);
  if (isCut)
    lines.push(
      [],
      [{ text: 'More was found. Write more of the name, or choose a --cluster.', style: 'yellow' }],
    );
  return lines;
}

function linesOf(found: Found): Line[] {
  const { findings, hasMore } = found;
  return [
    [{ text: headingOf(found), style: 'bold' }],
    ...findings.flatMap(linesOfFinding),
    ...(hasMore ? [[{ text: '  … and more: the timeline shows all.', style: 'dim' as const }]] : []),
    ...(findings.length === 0 ? [[{ text: `  ${nothingOf(found)}` }]] : []),
    [{ text: `  ${timelineOf(found)}` }],
  ];
}

/** The words about its time, and without one. For pods and containers it is that of their last event. */
const LAST: Readonly<Record<Found['found'], readonly [string, string]>> = {
  node: ['last seen', 'never seen'],
  pod: ['last event', 'no event received'],
  container: ['last event', 'no event received'],
  finding: ['found', 'found'],
};

function headingOf({ cluster, node, found, text, at }: Found): string {
  const [last, never] = LAST[found];
  const where = found === 'node' ? '' : ` on ${node}`;
  return `${found} ${text}${where}, cluster ${cluster}, ${at === null ? never : `${last} ${toSecond(at)}`}`;
}

function linesOfFinding(finding: FoundFinding): Line[] {
  const title = titleOf(finding);
  const style = title.startsWith('missed') ? 'red' : 'yellow';
  return [
    [
      { text: '  ' },
      { text: title, style },
      { text: ` ${containerNameOf(finding)} ${toSecond(finding.at)}` },
    ],
    [{ text: `    ${PLEGWATCH} finding ${finding.finding_id} -o markdown` }],
  ];
}

function nothingOf({ found, at }: Found): string {
  if (found === 'node' && at === null) return 'No agent ever reported from it: nothing is known of it.';
  return `No ${found === 'node' ? 'missed event' : 'finding'} of it is stored. The timeline says what was not observed.`;
}

/** Around the missed event, if there is one. */
function timelineOf({ cluster, node, findings, at: last }: Found): string {
  const command = `${PLEGWATCH} timeline ${quoted(node)} --cluster ${quoted(cluster)}`;
  const at = Date.parse(findings[0]?.at ?? last ?? '');
  if (Number.isNaN(at)) return command;
  const [from, to] = [at - BEFORE_MS, at + AFTER_MS].map((ms) => toSecond(new Date(ms).toISOString()));
  return `${command} --from ${from} --to ${to}`;
}
