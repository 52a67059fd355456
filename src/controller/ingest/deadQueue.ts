/*
 * A queue that no controller works on: its number is higher than any that this database ever had, because Postgres was set up anew with
 * fewer queues while Redis kept its own, or because a client made up the number. Its jobs are moved to a queue that is
 * worked on, and its keys are removed.
 *
 * Each job is added to the other queue before it is removed: whatever comes in between leaves a copy, and the store counts each record once.
 */

import { invariant } from '../../platform/invariant.ts';
import { MAX_JOB_BYTES } from '../../protocol/batch.ts';
import type { RedisClient } from '../../redis/client.ts';
import { parseRepairs, type QueueRepair } from './queueGuard.ts';
import { KEY_CHECKS } from './queueGuardScripts.ts';

/** Names that are looked at in one step. */
const MAX_STEP = 50;
/** Of a job: id, name, data and time. */
const FIELDS = 4;

/** Runs a script on a queue with these arguments, and pauses. */
export type RunOnQueue = (queueKey: string, script: string, ...args: readonly string[]) => Promise<unknown>;

export const runOnQueue =
  (redis: RedisClient): RunOnQueue =>
  (queueKey, script, ...args) =>
    redis.eval(`${KEY_CHECKS}\n${script}`, 1, `${queueKey}:wait`, ...args);

/** Moves the jobs and removes the keys of a queue that have these names. Returns what was repaired in which queue. */
export async function clearDeadQueue(
  run: RunOnQueue,
  dead: string,
  live: string,
  names: readonly string[],
): Promise<(readonly [queueKey: string, repairs: QueueRepair[]])[]> {
  const repaired: (readonly [string, QueueRepair[]])[] = [];
  const note = (queueKey: string, json: unknown) => repaired.push([queueKey, parseRepairs(String(json))]);
  let isUsed = false;
  for (let at = 0; at < names.length; ) {
    const step = names.slice(at, at + MAX_STEP);
    const [found, seen, busy, jobs] = listOf(await run(dead, READ_DEAD_JOBS, ...step));
    note(dead, found);
    at += Number(seen);
    isUsed ||= busy === 1;
    const fields = listOf(jobs).map(String);
    const ids: string[] = [];
    for (let i = 0; i < fields.length; i += FIELDS) {
      note(live, await run(live, ADD_MOVED_JOB, ...fields.slice(i, i + FIELDS)));
      ids.push(fields[i] ?? '');
    }
    if (ids.length > 0) note(dead, await run(dead, REMOVE_MOVED_JOBS, ...ids));
  }
  // Another controller may know of more queues already.
  if (!isUsed) note(dead, await run(dead, REMOVE_DEAD_QUEUE));
  return repaired;
}

function listOf(answer: unknown): unknown[] {
  invariant(Array.isArray(answer), 'a script of a dead queue answers a list');
  return answer;
}

/**
 * Reads the jobs ARGV of a queue that no controller works on, up to so many bytes and one more. Returns what was found, how many of ARGV were
 * looked at, whether somebody has a job of it all the same, and the id, name, data and time of each job. What is no job is removed.
 */
const READ_DEAD_JOBS = `
local jobs, bytes, seen, busy = {}, 0, 0, 0
for _, name in ipairs(ARGV) do
  if bytes > ${MAX_JOB_BYTES} then break end
  seen = seen + 1
  local job = string.match(name, '^(.*):lock$')
  if locked(job or name) then
    busy = 1
  elseif not job and not types[name] and redis.call('EXISTS', queue .. name) == 1 then
    local why, detail = misfit(name)
    if not why and redis.call('HSTRLEN', queue .. name, 'data') == 0 then
      remove(name)
      why, detail = 'bad_job', 'no data'
    end
    if why then
      add(why, name, detail)
    else
      local fields = redis.call('HMGET', queue .. name, 'name', 'data', 'timestamp')
      bytes = bytes + #fields[2]
      for _, field in ipairs({ name, fields[1] or '', fields[2], fields[3] or '0' }) do jobs[#jobs + 1] = field end
    end
  end
end
return { #found > 0 and cjson.encode(found) or '[]', seen, busy, jobs }
`;

/** Adds a job from another queue, unless this one has it: its id, name, data and time are ARGV. */
const ADD_MOVED_JOB = `
local job = queue .. ARGV[1]
if redis.call('TYPE', job).ok ~= 'hash' then
  redis.call('UNLINK', job)
  redis.call('HSET', job, 'name', ARGV[2], 'data', ARGV[3], 'timestamp', ARGV[4])
  redis.call('LPUSH', queue .. 'wait', ARGV[1])
  redis.call('ZADD', queue .. 'marker', 0, '0')
end
return #found > 0 and cjson.encode(found) or '[]'
`;

/** Removes the jobs ARGV, which were moved. */
const REMOVE_MOVED_JOBS = `
for _, id in ipairs(ARGV) do
  if not locked(id) then
    remove(id)
    add('dead_queue', id, 'job moved')
  end
end
return #found > 0 and cjson.encode(found) or '[]'
`;

/** Removes all keys of a queue that has no jobs. Should it get one now, then the next search finds it. */
const REMOVE_DEAD_QUEUE = `
for name in pairs(types) do redis.call('UNLINK', queue .. name) end
add('dead_queue', '', 'removed')
return cjson.encode(found)
`;
