/*
 * The rows of a node over one axis. The wheel zooms while the drawing has the focus or with Ctrl, dragging and the arrow keys move. A stretch that
 * is dragged over the axis becomes the period.
 */
import type { TargetedMouseEvent, TargetedPointerEvent, TargetedWheelEvent } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { TimelineAnswer, TimelineFinding } from '../../api.ts';
import { moved, type Range, TimeScale, zoomed } from '../drawing/timeScale.ts';
import { useElementWidth } from '../parts/elementWidth.ts';
import { counted, moment, msOf } from '../text.ts';
import { BandRow } from './bandRow.tsx';
import { modeBands, readyBands } from './bands.ts';
import { Crosshair } from './crosshair.tsx';
import { cutsInWords } from './cutMark.tsx';
import { DensityRow } from './densityRow.tsx';
import { GapRow } from './gapRow.tsx';
import { LatencyRow } from './latencyRow.tsx';
import { LifeRow, lifeRowHeight } from './lifeRow.tsx';
import { findingsOfContainers } from './markedContainers.ts';
import { podLives } from './podLives.ts';
import { PodsNotShown, ROOM } from './podsNotShown.tsx';
import { PressureRow } from './pressureRow.tsx';
import { AXIS, type RowLayout, rowLayout } from './rowLayout.ts';
import { SessionRow } from './sessionRow.tsx';
import { TimelineKey } from './timelineKey.tsx';
import { knownPeriod, watchedPeriods } from './watched.ts';

interface Props {
  readonly answer: TimelineAnswer;
  readonly range: Range;
  readonly only: string;
  readonly onRange: (range: Range) => void;
  /** To a stretch, which can be left again. */
  readonly onJump: (range: Range) => void;
  /** Leaves it; undefined if there is none before. */
  readonly onBack: (() => void) | undefined;
}

/** Between the rows of one pod. */
const WITHIN_POD = 2;
const RIGHT = 8;

export function TimelineChart({ answer, range, only, onRange, onJump, onBack }: Props) {
  const [ref, width] = useElementWidth<HTMLDivElement>();
  const [room, setRoom] = useState(ROOM);
  const pods = useMemo(() => podLives(answer, range, only, room), [answer, range.from, range.to, only, room]);
  const layout = useMemo(() => {
    return rowLayout(width, [
      { key: 'stream', height: 20 },
      { key: 'gaps', height: 14 },
      { key: 'mode', height: 24 },
      { key: 'ready', height: 20 },
      { key: 'latency', height: 96 },
      { key: 'pressure', height: 42 },
      { key: 'events', height: 58 },
      ...pods.shown.flatMap(({ rows }) =>
        rows.map((lives, n) => ({
          ...{ key: lives.key, height: lifeRowHeight(lives) },
          ...(n === rows.length - 1 ? {} : { apart: WITHIN_POD }),
        })),
      ),
    ]);
  }, [pods, width]);
  const scale = new TimeScale(range, layout.left, width - RIGHT);
  const { chosen, gestures } = useGestures({ range, scale, onRange, onJump, onBack });
  const row = (key: string) => layout.rows.get(key) ?? { top: 0, height: 0, label: 0 };
  const until = Math.min(msOf(answer.now), Math.max(range.to, msOf(answer.to)));
  const watched = useMemo(() => watchedPeriods(answer), [answer]);
  const findings = useMemo(() => findingsOfContainers(answer, only), [answer, only]);
  const cuts = cutsInWords(answer, range);
  return (
    <section aria-label="Timeline">
      <TimelineKey />
      <div
        ref={ref}
        class="timeline"
        role="application"
        tabIndex={0}
        aria-label={inWords(answer, findings, range)}
        {...gestures}
      >
        {width > 0 && (
          <svg
            width={width}
            height={layout.height}
            viewBox={`0 0 ${width} ${layout.height}`}
            aria-hidden="true"
          >
            <Axis scale={scale} layout={layout} width={width} />
            <SessionRow
              sessions={answer.sessions}
              watched={watched}
              scale={scale}
              row={row('stream')}
              until={Math.min(until, knownPeriod(answer)?.to ?? until)}
            />
            <GapRow answer={answer} scale={scale} row={row('gaps')} />
            <BandRow
              name="Kubelet’s PLEG"
              bands={modeBands(answer, until)}
              cut={answer.modes.cut}
              scale={scale}
              row={row('mode')}
            />
            <BandRow
              name="Node Ready"
              bands={readyBands(answer, until)}
              cut={answer.conditions.cut}
              scale={scale}
              row={row('ready')}
              none="no change of Ready is known"
            />
            <LatencyRow
              slices={answer.relists.rows}
              bounds={answer.histBoundsMs}
              scale={scale}
              row={row('latency')}
              right={width - RIGHT}
            />
            <PressureRow
              slices={answer.relists.rows}
              scale={scale}
              row={row('pressure')}
              right={width - RIGHT}
            />
            <DensityRow
              answer={answer}
              findings={findings}
              only={only}
              scale={scale}
              row={row('events')}
              right={width - RIGHT}
            />
            {pods.shown.map(({ key, rows }) => (
              <g key={key}>
                {rows.map((lives) => (
                  <LifeRow
                    key={lives.key}
                    lives={lives}
                    scale={scale}
                    row={row(lives.key)}
                    left={layout.left}
                  />
                ))}
              </g>
            ))}
            {chosen !== undefined && (
              <rect class="stretch" {...scale.span(chosen.from, chosen.to)} y="0" height={layout.height} />
            )}
            <Crosshair scale={scale} left={layout.left} top={AXIS} height={layout.height} />
          </svg>
        )}
      </div>
      {cuts !== undefined && <p>{cuts}</p>}
      <PodsNotShown pods={pods} room={room} onRoom={setRoom} />
      <p class="soft hint">
        {pods.shown.length === 0 && 'No container changed in this period. '}
        Drag over the axis of time to zoom into a stretch; Escape or Back leaves it. Click the drawing: then
        the wheel or + and − zoom, dragging or ← and → move.
      </p>
    </section>
  );
}

interface AxisProps {
  readonly scale: TimeScale;
  readonly layout: RowLayout;
  readonly width: number;
}

/** The axis, and a faint line through all rows at each of its ticks. */
function Axis({ scale, layout, width }: AxisProps) {
  const ticks = scale.ticks(width < 720 ? 76 : 104);
  const lines = ticks.map(({ at }) => `M${Math.round(scale.x(at)) + 0.5} ${AXIS}V${layout.height}`).join('');
  return (
    <g>
      <rect class="axis" x={layout.left} y="0" width={Math.max(0, width - layout.left)} height={AXIS} />
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

function inWords(
  { node, modes }: TimelineAnswer,
  findings: readonly TimelineFinding[],
  range: Range,
): string {
  const missed = findings.filter(
    ({ kind, resolvedAt, at }) =>
      kind === 'missed' && resolvedAt === null && msOf(at) >= range.from && msOf(at) <= range.to,
  ).length;
  const mode = modes.rows.at(-1)?.toMode ?? 'Unknown';
  const period = `from ${moment(range.from)} to ${moment(range.to)} UTC`;
  return `Timeline of ${node} ${period}: ${counted(missed, 'missed event')}, mode ${mode}. Plus and minus zoom, the arrow keys move, Escape goes back. The table below has the findings.`;
}

interface Drag {
  readonly x: number;
  readonly range: Range;
  readonly scale: TimeScale;
  /** It chooses a stretch of the axis, and moves nothing. */
  readonly chooses: boolean;
  isMoving: boolean;
}

interface GestureOptions extends Pick<Props, 'range' | 'onRange' | 'onJump' | 'onBack'> {
  readonly scale: TimeScale;
}

/** Wheel, drag and keys, and the stretch that is being chosen. */
function useGestures({ range, scale, onRange, onJump, onBack }: GestureOptions) {
  const drag = useRef<Drag | undefined>(undefined);
  const [chosen, setChosen] = useState<Range>();
  const xOf = ({ clientX, currentTarget }: TargetedMouseEvent<HTMLElement>) =>
    clientX - currentTarget.getBoundingClientRect().left;
  const end = () => {
    drag.current = undefined;
    setChosen(undefined);
  };
  const gestures = {
    onWheel: (event: TargetedWheelEvent<HTMLElement>) => {
      if (!event.ctrlKey && document.activeElement !== event.currentTarget) return;
      event.preventDefault();
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        onRange(moved(range, scale.moment(sideways) - scale.moment(0)));
      } else onRange(zoomed(range, 1.0015 ** event.deltaY, scale.moment(xOf(event))));
    },
    onPointerDown: (event: TargetedPointerEvent<HTMLElement>) => {
      if (event.button !== 0 || !event.isPrimary) return;
      const chooses = event.target instanceof Element && event.target.classList.contains('axis');
      drag.current = { x: xOf(event), range, scale, chooses, isMoving: false };
    },
    onPointerMove: (event: TargetedPointerEvent<HTMLElement>) => {
      const from = drag.current;
      if (from === undefined) return;
      const dx = xOf(event) - from.x;
      // A click on a missed event is no drag.
      if (!from.isMoving && Math.abs(dx) < 4) return;
      if (!from.isMoving) event.currentTarget.setPointerCapture(event.pointerId);
      from.isMoving = true;
      if (from.chooses) setChosen(stretchOf(from, xOf(event)));
      else onRange(moved(from.range, from.scale.moment(0) - from.scale.moment(dx)));
    },
    onPointerUp: () => {
      end();
      if (chosen !== undefined) onJump(chosen);
    },
    onPointerCancel: end,
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === 'Escape') return drag.current === undefined ? onBack?.() : end();
      const next = rangeOfKey(event.key, range);
      if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      onRange(next);
    },
  };
  return { chosen, gestures };
}

/** From where the drag began to a place, and never beyond what is shown. */
function stretchOf({ x, scale, range }: Drag, to: number): Range {
  const [first = 0, last = 0] = [x, to].map((each) =>
    Math.min(range.to, Math.max(range.from, scale.moment(each))),
  );
  return { from: Math.min(first, last), to: Math.max(first, last) };
}

function rangeOfKey(key: string, range: Range): Range | undefined {
  const span = range.to - range.from;
  const middle = range.from + span / 2;
  if (key === '+' || key === '=') return zoomed(range, 0.5, middle);
  if (key === '-') return zoomed(range, 2, middle);
  if (key === 'ArrowLeft') return moved(range, -span / 10);
  if (key === 'ArrowRight') return moved(range, span / 10);
  if (key === 'PageUp') return moved(range, -span);
  return key === 'PageDown' ? moved(range, span) : undefined;
}
