/*
 * Which moment is where, and where the axis has its ticks.
 */

export interface Range {
  readonly from: number;
  readonly to: number;
}

export const MIN_SPAN_MS = 1000;
export const MAX_SPAN_MS = 31 * 86_400_000;

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 5, 10].map((n) => n * DAY),
];

export interface Tick {
  readonly at: number;
  /** Only what is not obvious from the step: `03:12`, `03:12:05`, `22 Nov`. */
  readonly label: string;
}

export class TimeScale {
  readonly range: Range;
  readonly #left: number;
  readonly #perMs: number;

  constructor(range: Range, left: number, right: number) {
    this.range = range;
    this.#left = left;
    this.#perMs = Math.max(1, right - left) / (range.to - range.from);
  }

  /** The place of a moment, which may be outside the drawing. */
  x(ms: number): number {
    return this.#left + (ms - this.range.from) * this.#perMs;
  }

  /** A period within the drawing; undefined if nothing of it is. Without an end, it lasts until the end of the drawing. */
  span(from: number, to: number | null): { readonly x: number; readonly width: number } | undefined {
    const { range } = this;
    const end = to ?? range.to;
    if (end < range.from || from > range.to) return undefined;
    const [left, right] = [this.x(Math.max(from, range.from)), this.x(Math.min(end, range.to))];
    return { x: left, width: Math.max(1, right - left) };
  }

  moment(x: number): number {
    return this.range.from + (x - this.#left) / this.#perMs;
  }

  /** Ticks at round moments, about `apart` pixels from each other. */
  ticks(apart: number): Tick[] {
    const { from, to } = this.range;
    const least = apart / this.#perMs;
    const step = STEPS.find((each) => each >= least) ?? 10 * DAY;
    const first = Math.ceil(from / step) * step;
    const size = Math.max(0, Math.floor((to - first) / step) + 1);
    return Array.from({ length: size }, (_, at) => first + at * step).map((at) => ({
      at,
      label: labelOf(at, step),
    }));
  }
}

function labelOf(ms: number, step: number): string {
  const text = new Date(ms).toISOString();
  if (ms % DAY === 0) return dayOf(ms);
  if (step >= MINUTE) return text.slice(11, 16);
  return step >= SECOND ? text.slice(11, 19) : text.slice(11, 23);
}

/** 22 Nov */
export const dayOf = (ms: number): string =>
  new Date(ms).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Smaller than 1 zooms in. The moment `around` stays where it is. */
export function zoomed({ from, to }: Range, factor: number, around: number): Range {
  const span = Math.min(MAX_SPAN_MS, Math.max(MIN_SPAN_MS, (to - from) * factor));
  const part = (around - from) / (to - from);
  return { from: around - span * part, to: around + span * (1 - part) };
}

export const moved = ({ from, to }: Range, ms: number): Range => ({ from: from + ms, to: to + ms });

/** The range with a margin on both sides, as a share of it. */
export const widened = ({ from, to }: Range, part: number): Range => ({
  from: from - (to - from) * part,
  to: to + (to - from) * part,
});
