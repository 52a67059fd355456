/*
 * The axis, and a faint line through all rows at each of its ticks.
 */
import type { TimeScale } from '../drawing/timeScale.ts';
import { AXIS, type RowLayout } from './rowLayout.ts';

interface Props {
  readonly scale: TimeScale;
  readonly layout: RowLayout;
  readonly width: number;
}

export function Axis({ scale, layout, width }: Props) {
  const ticks = scale.ticks(width < 720 ? 76 : 104);
  const lines = ticks.map(({ at }) => `M${Math.round(scale.x(at)) + 0.5} ${AXIS}V${layout.height}`).join('');
  return (
    <g>
      <path class="tick-line" d={lines} />
      <path class="axis-line" d={`M${layout.left} ${AXIS - 0.5}H${width}`} />
      {ticks.map(({ at, label }) => {
        const x = scale.x(at);
        const anchor = x < layout.left + 20 ? 'start' : x > width - 30 ? 'end' : 'middle';
        return (
          <text key={at} class="tick" x={x} y={AXIS - 9} text-anchor={anchor}>
            {label}
          </text>
        );
      })}
    </g>
  );
}
