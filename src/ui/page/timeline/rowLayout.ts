/*
 * Where the rows of a timeline are. On a wide page their names stand left of them, on a narrow one above.
 */
import type { TimeScale } from '../drawing/timeScale.ts';

export interface RowSize {
  readonly key: string;
  readonly height: number;
  /** How far the next row is from it, where that is less than usual. */
  readonly apart?: number;
}

export interface RowPlace {
  readonly top: number;
  readonly height: number;
  /** The baseline of the name. */
  readonly label: number;
}

/** The measures of every row. */
export interface RowProps {
  readonly scale: TimeScale;
  readonly row: RowPlace;
}

export interface RowLayout {
  /** The left edge of the drawing. */
  readonly left: number;
  readonly rows: ReadonlyMap<string, RowPlace>;
  readonly height: number;
}

const WIDE = 720;
const GUTTER = 190;
const LABEL = 16;
const APART = 10;
export const AXIS = 26;

export function rowLayout(width: number, sizes: readonly RowSize[]): RowLayout {
  const isWide = width >= WIDE;
  const rows = new Map<string, RowPlace>();
  let y = AXIS + 6;
  for (const { key, height, apart = APART } of sizes) {
    const top = isWide ? y : y + LABEL;
    rows.set(key, { top, height, label: isWide ? top + Math.min(height, 24) / 2 + 4 : y + LABEL - 5 });
    y = top + height + apart;
  }
  return { left: isWide ? GUTTER : 0, rows, height: y };
}
