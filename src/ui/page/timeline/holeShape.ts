/*
 * How a missed event and a late status of the kubelet look: a hole in the row, as wide as the window in which the change happened. However far the reader zooms out, it stays
 * wide enough to be seen and hit.
 */
import type { TimeScale } from '../drawing/timeScale.ts';
import { visible } from '../text.ts';
import type { Hole } from './markedContainers.ts';

export const MIN_HOLE_WIDTH = 16;

export interface HoleShape {
  readonly x: number;
  readonly width: number;
  /** Where the figure of the event stands that is not there. */
  readonly at: number;
}

/** Undefined if the hole is outside the drawing. */
export function holeShape(hole: Hole, scale: TimeScale): HoleShape | undefined {
  const span = scale.span(hole.from, hole.to);
  if (span === undefined) return undefined;
  const at = Math.min(span.x + span.width, Math.max(span.x, scale.x(hole.at)));
  if (span.width >= MIN_HOLE_WIDTH) return { ...span, at };
  const middle = span.x + span.width / 2;
  return { x: middle - MIN_HOLE_WIDTH / 2, width: MIN_HOLE_WIDTH, at: middle };
}

const [APART, FIGURE] = [6, 8];

export interface LabelPlace {
  readonly x: number;
  readonly anchor: 'start' | 'end';
}

/** Where the words beside a hole cover no other mark of the row: right of it if that fits before the edge, else left of it. */
export function labelPlace(
  shape: Pick<HoleShape, 'x' | 'width'>,
  marks: readonly number[],
  width: number,
  edge: number,
): LabelPlace {
  const sorted = [...marks].sort((a, b) => a - b);
  let x = shape.x + shape.width + APART;
  for (const mark of sorted) {
    if (mark > x - FIGURE && mark < x + width + FIGURE) x = mark + FIGURE + APART;
  }
  if (x + width <= edge) return { x, anchor: 'start' };
  let end = shape.x - APART;
  for (const mark of sorted.reverse()) {
    if (mark > end - width - FIGURE && mark < end + FIGURE) end = mark - FIGURE - APART;
  }
  return { x: end, anchor: 'end' };
}

/** The words of one or more holes, and what they cover together. */
export interface HoleGroup {
  readonly holes: readonly Hole[];
  readonly text: string;
  readonly place: LabelPlace;
  readonly from: number;
  readonly to: number;
}

/** Width of a character of the words, bold and half of them capitals. */
const CHARACTER = 8.8;

function stateOf(holes: readonly Hole[]): string {
  const late = holes.filter(({ finding }) => finding.kind === 'kubelet_late').length;
  if (late > 0) return late === holes.length ? 'late in the kubelet' : 'missed or late in the kubelet';
  return holes.every(({ resolvedAt }) => resolvedAt !== null) ? 'overdue' : 'missed';
}

/** The words beside the holes of a row. Where those of two would overlap, they are words of both: `2 missed`. */
export function holeGroups(
  holes: readonly Hole[],
  marks: readonly number[],
  scale: TimeScale,
  edge: number,
): HoleGroup[] {
  const groups: HoleGroup[] = [];
  for (const hole of [...holes].sort((a, b) => a.from - b.from)) {
    let group = groupOf([hole], marks, scale, edge);
    for (let last = groups.at(-1); group && last && last.to + APART > group.from; last = groups.at(-1)) {
      groups.pop();
      group = groupOf([...last.holes, ...group.holes], marks, scale, edge);
    }
    if (group !== undefined) groups.push(group);
  }
  return groups;
}

function groupOf(
  holes: readonly Hole[],
  marks: readonly number[],
  scale: TimeScale,
  edge: number,
): HoleGroup | undefined {
  const shapes = holes.flatMap((hole) => holeShape(hole, scale) ?? []);
  if (shapes.length === 0) return undefined;
  const x = Math.min(...shapes.map((shape) => shape.x));
  const end = Math.max(...shapes.map((shape) => shape.x + shape.width));
  const type = holes.length === 1 ? holes[0]?.finding.eventType : undefined;
  const text = `${holes.length === 1 ? visible(type ?? 'event') : holes.length} ${stateOf(holes)}`;
  const width = text.length * CHARACTER;
  const place = labelPlace({ x, width: end - x }, marks, width, edge);
  const left = place.anchor === 'start' ? place.x : place.x - width;
  return { holes, text, place, from: Math.min(x, left), to: Math.max(end, left + width) };
}
