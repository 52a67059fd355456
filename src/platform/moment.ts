/*
 * Moments as people write them in settings: `2026-11-22T03:12:00Z`, `2026-11-22 03:12`, `03:12`, `-90m`, `now`. Without a zone they are UTC, as
 * everything that is printed.
 */
import { BadValue } from './settings.ts';

const DAY_MS = 86_400_000;
const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };
const HINT = 'must be a time such as 2026-11-22T03:12:00Z, 03:12 (UTC), -90m, -2d or now';

/** Reads a moment; `03:12` is the last one that has passed. Throws {@link BadValue}. */
export function moment(raw: string, now = Date.now()): Date {
  if (raw === 'now') return new Date(now);
  const [, amount, unit = ''] = /^-(\d+(?:\.\d+)?)([smhd])$/.exec(raw) ?? [];
  if (amount !== undefined) return valid(now - Number(amount) * (UNITS_MS[unit] ?? Number.NaN));
  if (/^\d\d:\d\d(:\d\d)?$/.test(raw)) {
    const today = valid(Date.parse(`${new Date(now).toISOString().slice(0, 10)}T${raw}Z`)).getTime();
    return new Date(today <= now ? today : today - DAY_MS);
  }
  const [, date, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(raw) ?? [];
  return valid(Date.parse(`${date}T${time}${zone}`));
}

function valid(ms: number): Date {
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) throw new BadValue(HINT);
  return at;
}
