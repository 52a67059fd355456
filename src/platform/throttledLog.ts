/*
 * A log that one message cannot fill: whoever may put jobs into a lane may put in a million, and each of them is worth a
 * line of its own.
 *
 * A message, with the reason or cause in its fields, is said a few times a minute; the next line of it after that minute
 * tells in `unsaid` how many were left out. All of them are counted in the metrics all the same.
 */

type Say = (fields: object, message: string) => void;

/** The part of a logger that is used here. */
export interface SparingLog {
  readonly warn: Say;
  readonly error: Say;
}

/** How often the same may be said, and in how many milliseconds. */
export const SAID_AT_MOST = 5;
const WITHIN_MS = 60_000;
/** More kinds of lines than we have: whatever a field brings in, the tallies stay small. */
const MOST_KINDS = 256;

interface Tally {
  readonly since: number;
  readonly said: number;
  readonly unsaid: number;
}

/** `now` is in milliseconds, on any clock that never goes back. */
export function sparing(log: SparingLog, now: () => number = () => performance.now()): SparingLog {
  const tallies = new Map<string, Tally>();
  /** Whether to say it: then with how many of its kind were left out before it. */
  const count = (kind: string): number | null => {
    const tally = tallies.get(kind);
    if (tally !== undefined && now() - tally.since < WITHIN_MS) {
      const say = tally.said < SAID_AT_MOST;
      tallies.set(kind, say ? { ...tally, said: tally.said + 1 } : { ...tally, unsaid: tally.unsaid + 1 });
      return say ? 0 : null;
    }
    if (tally === undefined && tallies.size >= MOST_KINDS) tallies.clear();
    tallies.set(kind, { since: now(), said: 1, unsaid: 0 });
    return tally?.unsaid ?? 0;
  };
  const say = (level: 'warn' | 'error') => (fields: object, message: string) => {
    const unsaid = count(kindOf(fields, message));
    if (unsaid !== null) log[level](unsaid === 0 ? fields : { ...fields, unsaid }, message);
  };
  return { warn: say('warn'), error: say('error') };
}

function kindOf(fields: object, message: string): string {
  const why: unknown = Reflect.get(fields, 'reason') ?? Reflect.get(fields, 'cause') ?? '';
  return `${message} ${String(why)}`;
}
