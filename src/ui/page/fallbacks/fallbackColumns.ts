/*
 * Fallbacks of all clusters by day, days without any included.
 */
import type { DayOfFallbacks } from '../../api.ts';

export interface Column {
  /** Its midnight, in milliseconds since 1970. */
  readonly day: number;
  readonly fallbacks: number;
  readonly nodes: number;
}

const DAY = 86_400_000;

export function columnsOf(days: readonly DayOfFallbacks[], from: number, to: number): Column[] {
  const first = Math.floor(from / DAY);
  const last = Math.max(first, Math.floor((to - 1) / DAY));
  return Array.from({ length: last - first + 1 }, (_, n) => {
    const day = (first + n) * DAY;
    const text = new Date(day).toISOString().slice(0, 10);
    const ofDay = days.filter((each) => each.day === text);
    const sum = (figure: (each: DayOfFallbacks) => number) =>
      ofDay.reduce((all, each) => all + figure(each), 0);
    return { day, fallbacks: sum((each) => each.fallbacks), nodes: sum((each) => each.nodes) };
  });
}
