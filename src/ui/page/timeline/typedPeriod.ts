/*
 * The period that somebody typed: a moment as in `plegwatch timeline --from`, two of them, or a day. Without a zone it is UTC, as all times of
 * the page.
 */
import { momentOf, utcDay } from '../../../platform/moment.ts';
import { MAX_SPAN_MS, MIN_SPAN_MS, type Range } from '../drawing/timeScale.ts';

const AROUND_MS = 900_000;
const DAY_MS = 86_400_000;
const BETWEEN = /\s+(?:–|-|to|until)\s+/;
const FORMS =
  'Write a time such as 2026-11-22 03:12, 03:12 or -5d 03:12 (UTC), or two with “to” between them.';

/** Around a single moment as long as `span`, and at most half an hour. A string says why it is no period. */
export function typedPeriod(text: string, now: number, span: number): Range | string {
  const [first = '', second, ...more] = text.trim().split(BETWEEN);
  const from = momentOf(first, now);
  if (from === undefined || more.length > 0) return FORMS;
  if (second === undefined) {
    if (/^\d{4}-\d\d-\d\d$/.test(first)) return { from, to: from + DAY_MS };
    const around = Math.min(AROUND_MS, Math.max(MIN_SPAN_MS, span) / 2);
    return { from: from - around, to: from + around };
  }
  const to = endOf(second, from, now);
  if (to === undefined) return FORMS;
  if (to <= from) return 'The first time must be before the second.';
  return to - from > MAX_SPAN_MS ? 'A timeline has at most 31 days.' : { from, to };
}

/** A time of the day is the first one after the beginning. */
function endOf(text: string, from: number, now: number): number | undefined {
  const ofDay = momentOf(`${utcDay(from)} ${text}`, now);
  if (ofDay === undefined) return momentOf(text, now);
  return ofDay > from ? ofDay : ofDay + DAY_MS;
}
