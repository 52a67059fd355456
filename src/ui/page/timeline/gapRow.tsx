/*
 * What was not observed: nothing is claimed of these periods.
 */
import { NOT_OBSERVED } from '../../../analysis/words.ts';
import type { Gap } from '../../api.ts';
import { moment, msOf, visible } from '../text.ts';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly gaps: readonly Gap[];
}

const CHARACTER = 6.4;

export function GapRow({ gaps, scale, row }: Props) {
  const shown = gaps.flatMap((gap) => {
    const span = scale.span(msOf(gap.from), gap.to === null ? null : msOf(gap.to));
    return span === undefined ? [] : [{ gap, ...span }];
  });
  return (
    <g>
      <RowName row={row} name="Not observed" />
      {shown.length === 0 && (
        <text class="row-none" x={scale.x(scale.range.from) + 2} y={row.top + row.height / 2 + 4}>
          no gap
        </text>
      )}
      {shown.map(({ gap, x, width }) => {
        const what = NOT_OBSERVED[gap.scope] ?? visible(gap.scope);
        const end = gap.to === null ? 'until now' : `to ${moment(msOf(gap.to))}`;
        return (
          <g key={`${gap.scope} ${gap.from} ${gap.cause}`}>
            <title>{`${what}, from ${moment(msOf(gap.from))} ${end} UTC: ${visible(gap.cause)}`}</title>
            <rect class="tone-none" x={x} y={row.top} width={Math.max(3, width)} height={row.height} rx="2" />
            <path class="gap-hatch" d={hatch(x, row.top, Math.max(3, width), row.height)} />
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
    </g>
  );
}

/** Slanted lines: a pattern would need an id, which two drawings in a page may share. */
function hatch(x: number, y: number, width: number, height: number): string {
  let path = '';
  for (let at = 3; at < width + height; at += 6) {
    const [from, to] = [Math.max(0, at - height), Math.min(width, at)];
    path += `M${x + from} ${y + at - from}L${x + to} ${y + at - to}`;
  }
  return path;
}
