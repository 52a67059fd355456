/*
 * How long relists took: each minute's distribution as a column, the agent's 99th percentile as a line, the kubelet's own as a dashed one.
 */
import { duration } from '../../../analysis/words.ts';
import type { RelistSlice } from '../../api.ts';
import { durationScale, figureLine, heatPaths } from './latencyHeat.ts';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly slices: readonly RelistSlice[];
  readonly bounds: readonly number[];
  readonly right: number;
}

export function LatencyRow({ slices, bounds, scale, row, right }: Props) {
  const { height } = row;
  const durations = durationScale(slices);
  const left = scale.x(scale.range.from);
  const line = (figure: (slice: RelistSlice) => number | null) =>
    figureLine(slices, scale, durations, height, figure);
  const failed = slices.filter(({ errors }) => errors > 0);
  return (
    <g>
      <RowName row={row} name="Relist duration" />
      <g transform={`translate(0 ${row.top})`}>
        <rect class="plot" x={left} y="0" width={Math.max(0, right - left)} height={height} />
        {durations.ticks.map((tick) => {
          const y = Math.round(height * (1 - durations.at(tick))) + 0.5;
          return (
            <g key={tick}>
              <path class="tick-line" d={`M${left} ${y}H${right}`} />
              {y > 10 && (
                <text
                  class="tick-small"
                  x={left > 0 ? left - 8 : right - 4}
                  y={left > 0 ? y + 3 : y - 3}
                  text-anchor="end"
                >
                  {duration(tick)}
                </text>
              )}
            </g>
          );
        })}
        {heatPaths(slices, bounds, scale, durations, height).map(({ darkness, path }) => (
          <path key={darkness} class={`tone-good heat-${darkness}`} d={path} />
        ))}
        <path class="line-kubelet" d={line((slice) => slice.kubeletP99Ms)} />
        <path class="line-agent" d={line((slice) => slice.p99Ms)} />
        <path
          class="tone-bad"
          d={failed.map(({ at }) => `M${Math.round(scale.x(Date.parse(at)))} ${height}l4 -7h-8z`).join('')}
        />
        {slices.length === 0 && (
          <text class="row-none" x={left + 8} y={height / 2 + 4}>
            no relists recorded in this period
          </text>
        )}
      </g>
    </g>
  );
}
