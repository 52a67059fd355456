/*
 * A column for each day on which a kubelet fell back.
 */
import type { DayOfFallbacks, ObservedDay } from '../../api.ts';
import { Drawing } from '../drawing/drawing.tsx';
import { dayOf } from '../drawing/timeScale.ts';
import { count, counted } from '../text.ts';
import { columnsOf } from './fallbackColumns.ts';

interface Props {
  readonly days: readonly DayOfFallbacks[];
  readonly from: number;
  readonly to: number;
  readonly width: number;
  /** A day without any is marked. */
  readonly observed: readonly ObservedDay[];
  /** Opens a day, in milliseconds since 1970. For keyboards there is another way. */
  readonly onDay: (day: number) => void;
}

const [TOP, PLOT, BOTTOM] = [18, 130, 26];
/** The width of a day's name. */
const LABEL = 44;

export function FallbackPlot({ days, from, to, width, observed, onDay }: Props) {
  const columns = columnsOf(days, from, to);
  const most = columns.reduce((top, { fallbacks }) => Math.max(top, fallbacks), 1);
  const pitch = width / columns.length;
  const every = Math.max(1, Math.ceil(60 / pitch));
  const height = TOP + PLOT + BOTTOM;
  const unknown = new Set(observed.filter(({ nodes }) => nodes === 0).map(({ day }) => Date.parse(day)));
  const unobserved = columns.filter(({ day, fallbacks }) => fallbacks === 0 && unknown.has(day));
  return (
    <Drawing width={width} height={height} label={inWords(days, unobserved.length)}>
      <path class="axis-line" d={`M0 ${TOP + PLOT + 0.5}H${width}`} />
      {columns.map(({ day, fallbacks, nodes }, n) => {
        const tall = (fallbacks / most) * PLOT;
        const wide = Math.min(48, Math.max(2, pitch * 0.7));
        const middle = (n + 0.5) * pitch;
        return (
          <g key={day} class="opens" onPointerUp={() => onDay(day)}>
            {fallbacks === 0 && unknown.has(day) && (
              <rect
                class="gap-plate"
                x={Math.round(n * pitch)}
                y={TOP}
                width={Math.round((n + 1) * pitch) - Math.round(n * pitch)}
                height={PLOT}
              >
                <title>{`${dayOf(day)}: nobody observed a kubelet`}</title>
              </rect>
            )}
            {fallbacks > 0 && (
              <>
                <title>{`${dayOf(day)}: ${counted(fallbacks, 'fallback')} on ${counted(nodes, 'node')}`}</title>
                <rect
                  class="tone-bad"
                  x={middle - wide / 2}
                  y={TOP + PLOT - tall}
                  width={wide}
                  height={tall}
                  rx="2"
                />
                {pitch > 16 && (
                  <text x={middle} y={TOP + PLOT - tall - 5} text-anchor="middle">
                    {count(fallbacks)}
                  </text>
                )}
              </>
            )}
            {n % every === 0 && (
              <text
                class="tick"
                x={Math.min(width - LABEL / 2, Math.max(middle, LABEL / 2))}
                y={height - 8}
                text-anchor="middle"
              >
                {dayOf(day)}
              </text>
            )}
          </g>
        );
      })}
    </Drawing>
  );
}

const inWords = (days: readonly DayOfFallbacks[], unobserved: number): string =>
  [
    ...days.map(
      ({ cluster, day, fallbacks, nodes }) =>
        `${day}, ${cluster}: ${counted(fallbacks, 'fallback')} on ${counted(nodes, 'node')}`,
    ),
    ...(unobserved > 0 ? [`Nobody observed a kubelet on ${counted(unobserved, 'day')}`] : []),
  ].join('. ');
