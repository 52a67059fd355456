/*
 * Unobserved periods: nothing is claimed of them. So are the time before the first agent, and that since the last was heard of.
 */
import { NOT_OBSERVED } from '../../../analysis/words.ts';
import type { Gap, TimelineAnswer } from '../../api.ts';
import { moment, msOf, visible } from '../text.ts';
import { CutMark } from './cutMark.tsx';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';
import { noGapInWords, silenceOf } from './watched.ts';

interface Props extends RowProps {
  readonly answer: TimelineAnswer;
}

const CHARACTER = 6.4;
/** A narrower one has no room for it. */
const HATCHED = 6;

export function GapRow({ answer, scale, row }: Props) {
  const now = msOf(answer.now);
  const shown = [...impliedGaps(answer), ...answer.gaps.rows].flatMap((gap) => {
    const span = scale.span(msOf(gap.from), gap.to === null ? now : msOf(gap.to));
    return span === undefined ? [] : [{ gap, ...span }];
  });
  return (
    <g>
      <RowName row={row} name="Not observed" />
      {shown.length === 0 && (
        <text class="row-none" x={scale.x(scale.range.from) + 2} y={row.top + row.height / 2 + 4}>
          {noGapInWords(answer, scale.range)}
        </text>
      )}
      {shown.map(({ gap, x, width }) => {
        const what = NOT_OBSERVED[gap.scope] ?? visible(gap.scope);
        const end = gap.to === null ? 'until now' : `to ${moment(msOf(gap.to))}`;
        return (
          <g key={`${gap.scope} ${gap.from} ${gap.cause}`}>
            <title>{`${what}, from ${moment(msOf(gap.from))} ${end} UTC: ${visible(gap.cause)}`}</title>
            <rect class="tone-none" x={x} y={row.top} width={Math.max(3, width)} height={row.height} rx="2" />
            {width > HATCHED && <path class="gap-hatch" d={hatch(x, row.top, width, row.height)} />}
            {width > what.length * CHARACTER + 20 && (
              <g>
                <rect
                  class="gap-plate"
                  x={x + 6}
                  y={row.top}
                  width={what.length * CHARACTER + 8}
                  height={row.height}
                />
                <text class="gap-name" x={x + 10} y={row.top + row.height - 3}>
                  {what}
                </text>
              </g>
            )}
          </g>
        );
      })}
      <CutMark cut={answer.gaps.cut} scale={scale} row={row} />
    </g>
  );
}

/** The time before the first agent, and that since an agent was last heard of, until SQL has a gap for it. */
function impliedGaps(answer: TimelineAnswer): Gap[] {
  const { from, now, firstSeen, gaps } = answer;
  const gap = (cause: string, began: string, to: string): Gap => ({
    ...{ scope: 'agent', cause, from: began, to, filledAt: null },
  });
  const silentSince = silenceOf(answer);
  const isDeclared = gaps.rows.some(({ scope, to }) => scope === 'agent' && to === null);
  return [
    ...(firstSeen === null || firstSeen > from ? [gap('no agent yet', from, firstSeen ?? now)] : []),
    ...(silentSince === undefined || isDeclared ? [] : [gap('its agent is silent', silentSince, now)]),
  ];
}

/** Slanted lines: a pattern would need an id, which two drawings in a page may share. */
export function hatch(x: number, y: number, width: number, height: number): string {
  let path = '';
  for (let at = 3; at < width + height; at += 6) {
    const [from, to] = [Math.max(0, at - height), Math.min(width, at)];
    path += `M${x + from} ${y + at - from}L${x + to} ${y + at - to}`;
  }
  return path;
}
