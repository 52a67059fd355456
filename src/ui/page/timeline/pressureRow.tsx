/*
 * The pressure of the node: for which share of each minute at least one of its tasks waited for a processor, disk or memory, and, darker, all
 * that were not idle.
 */
import type { RelistSlice } from '../../api.ts';
import { barPath } from './latencyHeat.ts';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly slices: readonly RelistSlice[];
  readonly right: number;
}

type Share = (slice: RelistSlice) => number | null;
/** The kernel has no full pressure of the processor for a whole node. */
const RESOURCES: readonly { readonly name: string; readonly some: Share; readonly full: Share }[] = [
  { name: 'cpu', some: ({ cpuSome }) => cpuSome, full: () => null },
  { name: 'disk', some: ({ ioSome }) => ioSome, full: ({ ioFull }) => ioFull },
  { name: 'memory', some: ({ memorySome }) => memorySome, full: ({ memoryFull }) => memoryFull },
];

export function PressureRow({ slices, scale, row, right }: Props) {
  const left = scale.x(scale.range.from);
  const band = row.height / RESOURCES.length;
  const isKnown = slices.some(({ cpuSome }) => cpuSome !== null);
  return (
    <g>
      <RowName row={row} name="Node’s pressure" />
      <g transform={`translate(0 ${row.top})`}>
        <rect class="plot" x={left} y="0" width={Math.max(0, right - left)} height={row.height} />
        {isKnown &&
          RESOURCES.map(({ name, some, full }, place) => (
            <g key={name} transform={`translate(0 ${Math.round(place * band)})`}>
              <path class="tone-poor heat-1" d={barPath(slices, scale, band - 1, some)} />
              <path class="tone-bad" d={barPath(slices, scale, band - 1, full)} />
              <text
                class="tick-small"
                x={left > 0 ? left - 8 : right - 4}
                y={Math.round(band / 2) + 3}
                text-anchor="end"
              >
                {name}
              </text>
            </g>
          ))}
        {!isKnown && (
          <text class="row-none" x={left + 8} y={row.height / 2 + 4}>
            not reported in this period
          </text>
        )}
      </g>
    </g>
  );
}
