/*
 * Where the cells of a group are: in rows from left to right, as in a text. Thousands of cells are one path for each state, so a browser
 * has a dozen elements to lay out.
 */
import type { Figure } from '../colours.ts';

export interface CellLayout {
  /** From the left edge of a cell to that of the next. */
  readonly pitch: number;
  readonly columns: number;
}

const [MIN_PITCH, MAX_PITCH] = [11, 34];
/** The area that the cells of a fleet cover together, as the height of a block as wide as the page. */
const COVERED = 380;

/** Cells as large as this many allow. */
export function layoutOf(width: number, cellsOfFleet: number): CellLayout {
  const fitting = Math.floor(Math.sqrt((width * COVERED) / Math.max(1, cellsOfFleet)));
  const pitch = Math.min(MAX_PITCH, Math.max(MIN_PITCH, fitting));
  return { pitch, columns: Math.max(1, Math.floor(width / pitch)) };
}

export const heightOf = ({ pitch, columns }: CellLayout, cells: number): number =>
  Math.ceil(cells / columns) * pitch;

export const cornerOf = ({ pitch, columns }: CellLayout, at: number) => ({
  x: (at % columns) * pitch,
  y: Math.floor(at / columns) * pitch,
});

/** The cell at a point; undefined beside all. */
export function cellAt(
  { pitch, columns }: CellLayout,
  cells: number,
  x: number,
  y: number,
): number | undefined {
  const column = Math.floor(x / pitch);
  const at = Math.floor(y / pitch) * columns + column;
  return column >= 0 && column < columns && at >= 0 && at < cells ? at : undefined;
}

/** The side of a cell. */
export const sizeOf = ({ pitch }: CellLayout): number => pitch - (pitch > 14 ? 3 : 2);

/** The squares of some cells as one path. */
export function squaresPath(layout: CellLayout, cells: readonly number[]): string {
  const size = sizeOf(layout);
  const radius = Math.min(3, size / 4);
  const side = size - 2 * radius;
  const arc = (dx: number, dy: number) => `a${radius} ${radius} 0 0 1 ${dx} ${dy}`;
  const square = `h${side}${arc(radius, radius)}v${side}${arc(-radius, radius)}h${-side}${arc(-radius, -radius)}v${-side}${arc(radius, -radius)}z`;
  return cells
    .map((at) => {
      const { x, y } = cornerOf(layout, at);
      return `M${x + radius} ${y}${square}`;
    })
    .join('');
}

/** Lines within a square from 0 to 1; each is where it starts, and then its steps: x, y, dx, dy, dx, dy, … */
const FIGURES: Readonly<Record<Figure, readonly (readonly number[])[]>> = {
  none: [],
  dot: [[0.43, 0.43, 0.14, 0, 0, 0.14, -0.14, 0, 0, -0.14]],
  bar: [[0.28, 0.5, 0.44, 0]],
  slash: [[0.3, 0.7, 0.4, -0.4]],
  cross: [
    [0.3, 0.3, 0.4, 0.4],
    [0.3, 0.7, 0.4, -0.4],
  ],
  down: [[0.25, 0.38, 0.25, 0.28, 0.25, -0.28]],
  frame: [],
};

/** The figures of some cells as one path, to be stroked. */
export function figuresPath(layout: CellLayout, cells: readonly number[], figure: Figure): string {
  const size = sizeOf(layout);
  const rounded = (n: number) => Math.round(n * 100) / 100;
  return cells
    .flatMap((at) => {
      const corner = cornerOf(layout, at);
      return FIGURES[figure].map(([x = 0, y = 0, ...steps]) => {
        const start = `M${rounded(corner.x + x * size)} ${rounded(corner.y + y * size)}`;
        return `${start}l${steps.map((step) => rounded(step * size)).join(' ')}`;
      });
    })
    .join('');
}

/** The upper right corners of some cells, folded, as one path. */
export function cornersPath(layout: CellLayout, cells: readonly number[]): string {
  const size = sizeOf(layout);
  const side = Math.round(size * 4) / 10;
  return cells
    .map((at) => {
      const { x, y } = cornerOf(layout, at);
      return `M${x + size - side} ${y}h${side}v${side}z`;
    })
    .join('');
}

export type Direction = 'left' | 'right' | 'up' | 'down' | 'first' | 'last';

/** A cell by its group and its place in it. */
export interface CellPlace {
  readonly group: number;
  readonly at: number;
}

/** Where an arrow key leads: through all groups as if they were one text. */
export function neighbourOf(
  sizes: readonly number[],
  columns: number,
  from: CellPlace,
  direction: Direction,
): CellPlace {
  const groups = sizes.map((size, group) => ({ size, group })).filter(({ size }) => size > 0);
  const here = groups.findIndex(({ group }) => group === from.group);
  const [own, before, after] = [groups[here], groups[here - 1], groups[here + 1]];
  const [first, last] = [groups[0], groups.at(-1)];
  if (own === undefined || first === undefined || last === undefined) return from;
  const column = from.at % columns;
  const rowOf = (at: number) => Math.floor(at / columns);
  const within = (to: { readonly size: number; readonly group: number } | undefined, at: number) =>
    to === undefined ? from : { group: to.group, at: Math.min(to.size - 1, at) };
  switch (direction) {
    case 'first':
      return within(first, 0);
    case 'last':
      return within(last, last.size - 1);
    case 'left':
      return from.at > 0 ? within(own, from.at - 1) : within(before, Number.POSITIVE_INFINITY);
    case 'right':
      return from.at + 1 < own.size ? within(own, from.at + 1) : within(after, 0);
    case 'up':
      if (from.at >= columns) return within(own, from.at - columns);
      return within(before, rowOf((before?.size ?? 1) - 1) * columns + column);
    case 'down':
      return rowOf(from.at) < rowOf(own.size - 1) ? within(own, from.at + columns) : within(after, column);
  }
}
