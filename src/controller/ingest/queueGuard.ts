/*
 * Checks that run before each of BullMQ's scripts, because agents may have written anything into a queue.
 *
 * Agents may create keys of almost every type under the prefix of a queue. A key of a wrong type, a lock that never expires or a job of
 * half a gigabyte would make a script fail, or fill our memory, for ever. So each script that a worker runs is preceded by a check in
 * the same call, which nobody can come between: it repairs what it finds, reports it as an error, and the script is run again.
 *
 * After a job is taken the marker that wakes workers up is removed if no other waits (UNMARK).
 *
 * BullMQ registers its scripts with `defineCommand` of the connection it gets; that is where the check is put in front.
 */
import { invariant } from '../../platform/invariant.ts';
import type { RedisClient } from '../../redis/client.ts';
import { ENTRY_CHECKS, KEY_CHECKS, UNMARK } from './queueGuardScripts.ts';

export const REPAIR_KINDS = [
  'wrong_type',
  'setting',
  'unused_key',
  'forged_lock',
  'foreign_delay',
  'bad_entry',
  'bad_job',
  'job_fields',
  'orphan',
  'dead_queue',
] as const;

export interface QueueRepair {
  readonly kind: (typeof REPAIR_KINDS)[number];
  /** The key of the queue, or the id of the job. */
  readonly name: string;
  /** What was there, where that is known. */
  readonly detail: string;
}

/** Called with what was repaired in a queue, before the script runs again. */
export type RepairReport = (queueKey: string, repairs: readonly QueueRepair[]) => Promise<void>;

/** The checks of each script that a worker runs. */
const CHECKS: Readonly<Record<string, string>> = {
  moveToActive: ENTRY_CHECKS.nextJob,
  moveToFinished: ENTRY_CHECKS.finishedJob,
  moveToDelayed: ENTRY_CHECKS.delayedJob,
  moveStalledJobsToWait: ENTRY_CHECKS.activeJobs,
  extendLocks: '',
};
/** How many times a script is run again without a pause. */
const MAX_REPEATS = 100;
const REPAIRED = 'REPAIRED ';

/** Guards every script that BullMQ defines on this connection from now on. */
export function guardScripts(redis: RedisClient, report: RepairReport): void {
  const define = redis.defineCommand.bind(redis);
  redis.defineCommand = (name, definition) => {
    const script = name.split(':')[0] ?? '';
    const checks = CHECKS[script];
    if (checks === undefined) return define(name, definition);
    const work = script === 'moveToActive' ? followedBy(UNMARK, definition.lua) : definition.lua;
    define(name, { ...definition, lua: `${KEY_CHECKS}\n${checks}\n${REPORT}\n${work}` });
    const run: unknown = Reflect.get(redis, name);
    invariant(typeof run === 'function', 'a defined command is a function');
    Reflect.set(redis, name, (args: readonly unknown[]) =>
      repeated(() => Reflect.apply(run, redis, [args]), queueKeyOf(String(args[0])), report),
    );
  };
}

const REPORT =
  "if again or #found > 0 then return redis.error_reply('REPAIRED ' .. (#found > 0 and cjson.encode(found) or '[]')) end";

const followedBy = (after: string, lua: string): string =>
  `local result = (function() ${lua}\nend)()\n${after}\nreturn result`;

async function repeated(
  run: () => Promise<unknown>,
  queueKey: string,
  report: RepairReport,
): Promise<unknown> {
  for (let repeats = 0; ; repeats += 1) {
    try {
      return await run();
    } catch (error) {
      const repairs = repairsIn(error);
      if (repairs === null) throw error;
      await report(queueKey, repairs);
      if (repeats >= MAX_REPEATS) throw error;
    }
  }
}

const queueKeyOf = (key: string): string => key.slice(0, key.lastIndexOf(':'));

function repairsIn(error: unknown): QueueRepair[] | null {
  const message = error instanceof Error ? error.message : '';
  return message.startsWith(REPAIRED) ? parseRepairs(message.slice(REPAIRED.length)) : null;
}

/** What a script repaired, from the JSON of `found`. */
export function parseRepairs(json: string): QueueRepair[] {
  const found: unknown = JSON.parse(json);
  return (Array.isArray(found) ? found : []).map((each: unknown) => {
    const [kind, name, detail] = Array.isArray(each) ? each.map(String) : [];
    const known = REPAIR_KINDS.find((one) => one === kind);
    invariant(known, 'a check of a queue repairs what is known');
    return { kind: known, name: name ?? '', detail: detail ?? '' };
  });
}
