/*
 * The pools over one axis. Arrow keys go through slices and pools; the line above says what the slice has.
 */
import { useState } from 'preact/hooks';
import type { HoursAnswer } from '../../api.ts';
import type { Tone } from '../colours.ts';
import { Drawing } from '../drawing/drawing.tsx';
import { TimeScale } from '../drawing/timeScale.ts';
import { type Go, placeOfPool } from '../place.ts';
import { counted, cutTo, msOf } from '../text.ts';
import {
  MOSTLY,
  nameOf,
  type PoolStrips,
  type Run,
  runsOf,
  STRIP_NAMES,
  STRIPS,
  type Strip,
  shareOf,
  sliceInWords,
} from './poolStrips.ts';

interface Props {
  readonly answer: HoursAnswer;
  readonly pools: readonly PoolStrips[];
  readonly width: number;
  readonly go: Go;
}

const TONES: Readonly<Record<Strip, Tone>> = {
  ...{ missed: 'bad', fallen: 'poor', slow: 'warn', unobserved: 'none' },
};
const [AXIS, NAME, STRIP, APART] = [24, 18, 12, 16];
const POOL = NAME + STRIPS.length * STRIP + APART;
const CHARACTER = 6.4;

export function HoursPlot({ answer, pools, width, go }: Props) {
  const [at, setAt] = useState<{ readonly pool: number; readonly slice: number }>();
  const isWide = width >= 640;
  const left = isWide ? 130 : 0;
  const slices = answer.pools[0]?.missed.length ?? 0;
  const from = msOf(answer.from);
  const scale = new TimeScale({ from, to: from + slices * answer.seconds * 1000 }, left, width);
  const x = (slice: number) => Math.round(left + ((width - left) / slices) * slice);
  // Another period may have fewer slices.
  const chosen = at !== undefined && at.slice < slices ? pools[at.pool] : undefined;
  const move = (pool: number, slice: number) =>
    setAt({
      pool: Math.min(pools.length - 1, Math.max(0, pool)),
      slice: Math.min(slices - 1, Math.max(0, slice)),
    });
  const open = ({ pool: { cluster, pool } }: PoolStrips) => go(placeOfPool({ by: 'pool', cluster, pool }));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && chosen !== undefined) return open(chosen);
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const { pool, slice } = at ?? { pool: 0, slice: slices };
    move(pool + step.pool, slice + step.slice);
  };
  return (
    <>
      <p class="readout soft" role="status">
        {at === undefined || chosen === undefined
          ? 'Point at the drawing, or go through it with the arrow keys.'
          : sliceInWords(answer, chosen, at.slice)}
      </p>
      {!isWide && (
        <p class="soft hint">
          The strips of a pool, from above: {STRIPS.map((strip) => STRIP_NAMES[strip]).join(', ')}.
        </p>
      )}
      <div
        class="hours"
        role="application"
        aria-label="The fleet by hour: left and right go through time, up and down through pools, Enter opens the pool."
        tabIndex={0}
        onKeyDown={onKeyDown}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const slice = Math.floor(((event.clientX - box.left - left) / (width - left)) * slices);
          if (slice >= 0) move(Math.floor((event.clientY - box.top - AXIS) / POOL), slice);
        }}
      >
        <Drawing width={width} height={AXIS + pools.length * POOL} label={pools.map(poolInWords).join('. ')}>
          {scale.ticks(isWide ? 90 : 70).map(({ at: tick, label }) => (
            <g key={tick}>
              <path
                class="tick-line"
                d={`M${Math.round(scale.x(tick)) + 0.5} ${AXIS - 6}V${AXIS + pools.length * POOL - APART}`}
              />
              <text
                class="tick"
                x={scale.x(tick)}
                y={AXIS - 10}
                text-anchor={anchorOf(scale.x(tick), left, width)}
              >
                {label}
              </text>
            </g>
          ))}
          {pools.map((each, n) => (
            <Strips
              key={nameOf(each.pool)}
              strips={each}
              top={AXIS + n * POOL}
              left={left}
              x={x}
              width={width}
              onOpen={() => open(each)}
            />
          ))}
          {at !== undefined && chosen !== undefined && (
            <rect
              class="cell-chosen"
              x={x(at.slice) - 1}
              y={AXIS + at.pool * POOL + NAME - 1}
              width={x(at.slice + 1) - x(at.slice) + 2}
              height={STRIPS.length * STRIP + 2}
            />
          )}
        </Drawing>
      </div>
    </>
  );
}

const STEPS: Readonly<Record<string, { readonly pool: number; readonly slice: number }>> = {
  ArrowLeft: { pool: 0, slice: -1 },
  ArrowRight: { pool: 0, slice: 1 },
  ArrowUp: { pool: -1, slice: 0 },
  ArrowDown: { pool: 1, slice: 0 },
};

const anchorOf = (x: number, left: number, right: number): 'start' | 'middle' | 'end' =>
  x < left + 20 ? 'start' : x > right - 24 ? 'end' : 'middle';

interface StripsProps {
  readonly strips: PoolStrips;
  readonly top: number;
  readonly left: number;
  readonly width: number;
  readonly onOpen: () => void;
  /** The left edge of a slice. */
  readonly x: (slice: number) => number;
}

function Strips({ strips: { pool, lines, first }, top, left, width, x, onOpen }: StripsProps) {
  const y = (strip: number) => top + NAME + strip * STRIP;
  const slices = pool.missed.length;
  /** Nothing else is known of these. */
  const dark = runsOf(pool, 'unobserved').filter((run) => shareOf(pool, 'unobserved', run.from) >= MOSTLY);
  const path = (runs: readonly Run[], strip: number, height: number) =>
    runs.map((run) => `M${x(run.from)} ${y(strip)}H${x(run.to)}v${height}H${x(run.from)}z`).join('');
  const name = `${nameOf(pool)}, ${counted(pool.nodes, 'node')}`;
  const nameWidth = Math.min(width, name.length * 8.4);
  let free = nameWidth + 12;
  return (
    <g class="pool-hours">
      <g class="opens" onPointerUp={onOpen}>
        <text class="plot-name" x="0" y={top + 13}>
          {cutTo(name, width / 8.4)}
          <title>{name}</title>
        </text>
      </g>
      <rect
        class="plot"
        x={x(first)}
        y={y(0)}
        width={x(slices) - x(first)}
        height={STRIPS.length * STRIP - 1}
      />
      <path class="strip unobserved-whole tone-none" d={path(dark, 0, (STRIPS.length - 1) * STRIP - 1)} />
      {STRIPS.map((strip, n) => (
        <g key={strip}>
          {left > 0 && (
            <text class="tick-small" x={left - 8} y={y(n) + STRIP - 2} text-anchor="end">
              {STRIP_NAMES[strip]}
            </text>
          )}
          {[1, 2, 3].map((strength) => {
            const runs = runsOf(pool, strip).filter((run) => run.strength === strength);
            return runs.length === 0 ? null : (
              <path
                key={strength}
                class={`strip strip-${strip} tone-${TONES[strip]} heat-${strength}`}
                d={path(runs, n, STRIP - 2)}
              />
            );
          })}
        </g>
      ))}
      {lines.map(({ slice, label, title }) => {
        const at = x(slice);
        const long = label.length * CHARACTER;
        const isFree = at >= free && at + long < width;
        if (isFree) free = at + long + 8;
        return (
          <g key={slice}>
            <title>{title}</title>
            <path class="version-line" d={`M${at + 0.5} ${isFree ? top + 6 : y(0)}V${y(STRIPS.length)}`} />
            {isFree && (
              <text class="tick-small" x={at + 4} y={top + 13}>
                {label}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

const total = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

function poolInWords({ pool, lines }: PoolStrips): string {
  const bad = (strip: Strip) =>
    counted(
      runsOf(pool, strip).reduce((all, { from, to }) => all + to - from, 0),
      'slice',
    );
  return `${nameOf(pool)}: ${counted(total(pool.missed), 'missed event')}, kubelets in fallback in ${bad('fallen')}, PLEG slow or hung in ${bad('slow')}, not all observed in ${bad('unobserved')}, versions changed in ${counted(lines.length, 'slice')}`;
}
