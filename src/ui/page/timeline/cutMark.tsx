/*
 * The part of a row of which more is stored than was answered: nothing is claimed of it.
 */
import type { Cut, Rows, TimelineAnswer } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { moment, msOf } from '../text.ts';
import type { RowProps } from './rowLayout.ts';

const TEXT = 'more than can be drawn: zoom in';
const CHARACTER = 6.4;

export function CutMark({ cut, scale, row }: RowProps & { readonly cut: Cut | null }) {
  const span = cut === null ? undefined : scale.span(scale.range.from, msOf(cut.until));
  if (span === undefined) return null;
  const { x, width } = span;
  return (
    <g>
      <title>{TEXT}</title>
      <rect class="cut" x={x} y={row.top} width={width} height={row.height} />
      {width > TEXT.length * CHARACTER + 12 && (
        <text class="row-none" x={x + 6} y={row.top + row.height / 2 + 4}>
          {TEXT}
        </text>
      )}
    </g>
  );
}

const NAMES = {
  sessions: 'subscriptions',
  gaps: 'gaps',
  hangs: 'lists that hung',
  modes: 'changes of the mode',
  conditions: 'changes of Ready',
  events: 'events',
  changes: 'changes that lists showed',
  findings: 'findings',
} as const;
const KINDS = Object.keys(NAMES) as (keyof typeof NAMES)[];

/** The rows of the period that were not answered; undefined if everything was. */
export function cutsInWords(answer: TimelineAnswer, range: Range): string | undefined {
  const cuts = KINDS.flatMap((kind) =>
    isCutWithin(answer[kind], range)
      ? [`${NAMES[kind]} until ${moment(msOf(answer[kind].cut?.until ?? ''))}`]
      : [],
  );
  return cuts.length === 0
    ? undefined
    : `This period has more than can be drawn; some are left out: ${cuts.join(', ')} UTC. Zoom in to see them.`;
}

export const isCutWithin = ({ cut }: Pick<Rows<unknown>, 'cut'>, range: Range): boolean =>
  cut !== null && msOf(cut.until) >= range.from;
