/*
 * How a missed event looks: a hole in the row, as wide as the window in which the event was due. However far the reader zooms out, it stays
 * wide enough to be seen and hit.
 */
import type { TimeScale } from '../drawing/timeScale.ts';
import type { Hole } from './markedContainers.ts';

export const MIN_HOLE_WIDTH = 16;

export interface HoleShape {
  readonly x: number;
  readonly width: number;
  /** Where the figure of the event stands that is not there. */
  readonly at: number;
  /** Wider than its window, which is too short to be drawn as long as it was. */
  readonly isWidened: boolean;
}

/** Undefined if the hole is outside the drawing. */
export function holeShape(hole: Hole, scale: TimeScale): HoleShape | undefined {
  const span = scale.span(hole.from, hole.to);
  if (span === undefined) return undefined;
  const at = Math.min(span.x + span.width, Math.max(span.x, scale.x(hole.at)));
  if (span.width >= MIN_HOLE_WIDTH) return { ...span, at, isWidened: false };
  const middle = span.x + span.width / 2;
  return { x: middle - MIN_HOLE_WIDTH / 2, width: MIN_HOLE_WIDTH, at: middle, isWidened: true };
}

const [APART, FIGURE] = [6, 8];

export interface LabelPlace {
  readonly x: number;
  readonly anchor: 'start' | 'end';
}

/** Where the words beside a hole cover no other mark of the row: right of it if that fits before the edge, else left of it. */
export function labelPlace(
  shape: HoleShape,
  marks: readonly number[],
  width: number,
  edge: number,
): LabelPlace {
  let x = shape.x + shape.width + APART;
  for (const mark of [...marks].sort((a, b) => a - b)) {
    if (mark > x - FIGURE && mark < x + width + FIGURE) x = mark + FIGURE + APART;
  }
  return x + width <= edge ? { x, anchor: 'start' } : { x: shape.x - APART, anchor: 'end' };
}
