/*
 * Ages as kubectl prints them: fewer digits the older something is (apimachinery pkg/util/duration, HumanDuration).
 */

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const YEAR = 365 * DAY;

/** The age at `now` of something that happened at `at`. A moment in the future, beyond a second of clock skew, is `<invalid>`. */
export function ageOf(at: Date, now: Date): string {
  const seconds = Math.trunc((now.getTime() - at.getTime()) / 1000);
  if (seconds < -1) return '<invalid>';
  return humanDuration(Math.max(0, seconds));
}

/** A length of time in whole seconds, as kubectl writes it. */
export function humanDuration(seconds: number): string {
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return two(seconds, MINUTE, 'm', 1, 's');
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return two(seconds, HOUR, 'h', MINUTE, 'm');
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return two(seconds, DAY, 'd', HOUR, 'h');
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 8 * YEAR) return two(seconds, YEAR, 'y', DAY, 'd');
  return `${Math.floor(seconds / YEAR)}y`;
}

/** Two units, the second left out where it is zero. */
function two(seconds: number, unit: number, name: string, lesser: number, lesserName: string): string {
  const rest = Math.floor((seconds % unit) / lesser);
  return `${Math.floor(seconds / unit)}${name}${rest === 0 ? '' : `${rest}${lesserName}`}`;
}
