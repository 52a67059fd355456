/*
 * Moments as people write them: `2026-11-22T03:12:00Z`, `2026-11-22 03:12`, `03:12`, `-5d 03:12`, `-90m`, `now`. Without a zone they are UTC, as
 * everything that is printed.
 */
const DAY_MS = 86_400_000;
const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** In milliseconds since 1970; undefined if it is no moment. `03:12` is the last one that has passed, `-5d 03:12` that of the day five days ago. */
export function momentOf(raw: string, now: number): number | undefined {
  if (raw === 'now') return now;
  const [, amount, unit = ''] = /^-(\d+(?:\.\d+)?)([smhd])$/.exec(raw) ?? [];
  if (amount !== undefined) return valid(now - Number(amount) * (UNITS_MS[unit] ?? Number.NaN));
  const [, days, clock] = /^(?:-(\d{1,5})d )?(\d\d:\d\d(?::\d\d)?)$/.exec(raw) ?? [];
  if (clock !== undefined) {
    const ofDay = Date.parse(`${utcDay(now - Number(days ?? 0) * DAY_MS)}T${clock}Z`);
    return valid(days === undefined && ofDay > now ? ofDay - DAY_MS : ofDay);
  }
  const [, date, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(raw) ?? [];
  return valid(Date.parse(`${date}T${time}${zone}`));
}

/** 2026-11-22, in UTC. */
export const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

function valid(ms: number): number | undefined {
  return Number.isNaN(new Date(ms).getTime()) ? undefined : ms;
}
