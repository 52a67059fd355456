/*
 * A row of states, each with its name in it where that fits.
 */
import type { Cut } from '../../api.ts';
import { moment, visible } from '../text.ts';
import type { Band } from './bands.ts';
import { CutMark } from './cutMark.tsx';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly name: string;
  readonly bands: readonly Band[];
  readonly cut: Cut | null;
  /** Text if there is none. */
  readonly none?: string;
}

const CHARACTER = 7;

export function BandRow({ name, bands, cut, scale, row, none = 'not observed' }: Props) {
  const shown = bands.flatMap((band) => {
    const span = scale.span(band.from, band.to);
    return span === undefined ? [] : [{ ...band, ...span }];
  });
  return (
    <g>
      <RowName row={row} name={name} />
      {shown.length === 0 && (
        <text class="row-none" x={scale.x(scale.range.from) + 2} y={row.top + row.height / 2 + 4}>
          {none}
        </text>
      )}
      {shown.map(({ from, state, tone, why, x, width }) => (
        <g key={from}>
          <title>{`${visible(state)} since ${moment(from)} UTC${why === '' ? '' : `: ${visible(why)}`}`}</title>
          <rect
            class={`tone-${tone}`}
            x={x}
            y={row.top}
            width={Math.max(1, width - 1)}
            height={row.height}
            rx="3"
          />
          {width > state.length * CHARACTER + 14 && (
            <text class={`band-name on-${tone}`} x={x + 8} y={row.top + row.height / 2 + 4}>
              {visible(state)}
            </text>
          )}
        </g>
      ))}
      <CutMark cut={cut} scale={scale} row={row} />
    </g>
  );
}
