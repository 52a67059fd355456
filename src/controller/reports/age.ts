/*
 * Ages as kubectl prints them: less precise the older something is (apimachinery pkg/util/duration, HumanDuration).
 */

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const YEAR = 365 * DAY;

/** The age at `now` of something from `at`. `<invalid>` if `at` is in the future by more than a second of clock skew. */
export function ageOf(at: Date, now: Date): string {
  const seconds = Math.trunc((now.getTime() - at.getTime()) / 1000);
  if (seconds < -1) return '<invalid>';
  return humanDuration(Math.max(0, seconds));
}

/** The format of kubectl for whole seconds. */
export function humanDuration(seconds: number): string {
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return twoUnits(seconds, MINUTE, 'm', 1, 's');
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return twoUnits(seconds, HOUR, 'h', MINUTE, 'm');
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return twoUnits(seconds, DAY, 'd', HOUR, 'h');
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 8 * YEAR) return twoUnits(seconds, YEAR, 'y', DAY, 'd');
  return `${Math.floor(seconds / YEAR)}y`;
}

/** Two units; without the second one if it is zero. */
function twoUnits(seconds: number, unit: number, name: string, lesser: number, lesserName: string): string {
  const remainder = Math.floor((seconds % unit) / lesser);
  return `${Math.floor(seconds / unit)}${name}${remainder === 0 ? '' : `${remainder}${lesserName}`}`;
}
