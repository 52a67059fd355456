/*
 * The checks of a queue in Lua. They run in front of a script of BullMQ, so `KEYS` and `ARGV` are that script's: the first key is
 * always one of the queue. `found` gets what was repaired, `again` asks for another run.
 */
import { MAX_JOB_BYTES } from '../../protocol/batch.ts';
import { MAX_QUEUES } from '../../protocol/redisKeys.ts';

/** Longer than any delay that a worker of ours sets, and than the difference of two controllers' clocks. */
const MAX_DELAY_MS = 600_000;
/** A longer queue is worked off before it is swept. */
const MAX_SWEPT_JOBS = 10_000;
/** Entries of `active`; each controller has a few at most. */
const MAX_ACTIVE = 5_000;

/** Names of keys of a queue: those with a type, and those of jobs. */
const KEY_NAMES = `
local types = {
  wait = 'list', active = 'list', delayed = 'zset', marker = 'zset', stalled = 'set', meta = 'hash', events = 'stream',
  id = 'string', ['stalled-check'] = 'string', paused = '', limiter = '', prioritized = '', pc = '', completed = '', failed = '',
  ['waiting-children'] = '', ['repeat'] = ''
}
local function named(id)
  return #id <= 512 and not types[id] and string.find(id, '^[%w._-]+$') ~= nil
end
`;

/** Every key of a queue has its type; what only features use that we do not is removed. */
export const KEY_CHECKS = `
local found, again = {}, false
local queue = string.match(KEYS[1], '^(.*:)')
${KEY_NAMES}local function add(kind, name, detail)
  if #found < 100 then
    found[#found + 1] = { kind, string.sub(name, 1, 100), string.sub(detail or '', 1, 200) }
  else
    again = true
  end
end
for name, expected in pairs(types) do
  local is = redis.call('TYPE', queue .. name).ok
  if is ~= 'none' and is ~= expected then
    redis.call('UNLINK', queue .. name)
    add(expected == '' and 'unused_key' or 'wrong_type', name, is)
  end
end
local settings = redis.call('HMGET', queue .. 'meta', 'paused', 'concurrency', 'max', 'duration', 'opts.maxLenEvents')
if settings[1] or settings[2] or settings[3] or settings[4] then
  redis.call('HDEL', queue .. 'meta', 'paused', 'concurrency', 'max', 'duration')
  add('setting', 'meta')
end
if settings[5] ~= '100' then redis.call('HSET', queue .. 'meta', 'opts.maxLenEvents', 100) end
if redis.call('STRLEN', queue .. 'id') > 0 then
  local fits = redis.call('STRLEN', queue .. 'id') < 18
  if not fits or not string.find(redis.call('GET', queue .. 'id'), '^%d+$') then
    redis.call('UNLINK', queue .. 'id')
    add('setting', 'id')
  end
end
if redis.call('PTTL', queue .. 'stalled-check') == -1 then
  redis.call('UNLINK', queue .. 'stalled-check')
  add('forged_lock', 'stalled-check')
end

-- A lock of a worker expires; an agent cannot make one that does.
local function locked(id)
  local lock = queue .. id .. ':lock'
  local is = redis.call('TYPE', lock).ok
  if is == 'string' and redis.call('PTTL', lock) >= 0 then return true end
  if is ~= 'none' then
    redis.call('UNLINK', lock)
    add('forged_lock', id)
  end
  return false
end
local kept = { name = 256, data = ${MAX_JOB_BYTES}, timestamp = 20, processedOn = 20, ats = 15, atm = 15, stc = 15 }
local usual = { opts = true, delay = true, priority = true, pb = true }
-- Leaves of a job what a worker needs; the rest comes from whoever wrote it. Returns why the job cannot be kept.
local function clean(id)
  local job = queue .. id
  local is = redis.call('TYPE', job).ok
  if is == 'none' then return 'bad_entry', 'missing' end
  if is ~= 'hash' then return 'bad_job', 'a ' .. is end
  if redis.call('HLEN', job) > 64 then return 'bad_job', redis.call('HLEN', job) .. ' fields' end
  local bytes = redis.call('HSTRLEN', job, 'data')
  if bytes > kept.data then return 'bad_job', bytes .. ' bytes' end
  for _, field in ipairs(redis.call('HKEYS', job)) do
    local fits = kept[field] and redis.call('HSTRLEN', job, field) <= kept[field]
    local number = field ~= 'name' and field ~= 'data'
    if not fits or (number and not string.find(redis.call('HGET', job, field), '^%d+$')) then
      redis.call('HDEL', job, field)
      if not usual[field] then add('job_fields', id, field) end
    end
  end
  return nil
end
local function removeChildren(id)
  local job = queue .. id
  return redis.call('UNLINK', job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful', job .. ':logs')
end
local function remove(id)
  redis.call('UNLINK', queue .. id, queue .. id .. ':lock')
  removeChildren(id)
end
-- Why the entry of a list leads to no job that can be handled.
local function misfit(id)
  if not named(id) then return 'bad_entry', 'not an id' end
  local why, detail = clean(id)
  if why == 'bad_job' then remove(id) end
  return why, detail
end
`;

const ended = (id: string): string => `
locked(${id})
if clean(${id}) == 'bad_job' then remove(${id}) end
if removeChildren(${id}) > 0 then add('unused_key', ${id}) end
`;

export const ENTRY_CHECKS = {
  /** What is due, and what nobody of ours delayed, waits; whatever is not a job leaves the end of `wait`. */
  nextJob: `
local now = tonumber(ARGV[2])
local function wake(from, to, most)
  local ids = redis.call('ZRANGEBYSCORE', queue .. 'delayed', from, to, 'LIMIT', 0, most)
  for _, id in ipairs(ids) do
    redis.call('LPUSH', queue .. 'wait', id)
    redis.call('ZREM', queue .. 'delayed', id)
  end
  return ids
end
for _, id in ipairs(wake(string.format('(%.0f', (now + ${MAX_DELAY_MS}) * 4096), '+inf', 100)) do add('foreign_delay', id) end
if #wake('-inf', string.format('%.0f', (now + 1) * 4096 - 1), 1000) == 1000 then again = true end
for tries = 1, 101 do
  local id = redis.call('LINDEX', queue .. 'wait', -1)
  if not id then break end
  local why, detail = misfit(id)
  -- Another worker has it: it comes back if that one dies.
  if not why and locked(id) then why, detail = 'bad_entry', 'active' end
  if not why then break end
  redis.call('RPOP', queue .. 'wait')
  add(why, id, detail)
end
`,
  finishedJob: ended('ARGV[1]'),
  delayedJob: ended('ARGV[3]'),
  /** A stream whose last possible id is taken refuses every event, and with it every job. */
  activeJobs: `
local event = redis.pcall('XADD', queue .. 'events', 'MAXLEN', '~', 100, '*', 'event', 'checked')
if type(event) == 'table' and event.err and string.find(event.err, 'exhausted') then
  redis.call('UNLINK', queue .. 'events')
  add('setting', 'events')
end
if redis.call('LLEN', queue .. 'active') > ${MAX_ACTIVE} then
  -- Jobs that a worker takes enter at the head.
  redis.call('LTRIM', queue .. 'active', 0, ${MAX_ACTIVE} - 1)
  add('bad_entry', 'active', 'too many')
end
for _, id in ipairs(redis.call('LRANGE', queue .. 'active', 0, -1)) do
  if again then break end
  if not named(id) or not locked(id) then
    local why, detail = misfit(id)
    if why and redis.call('LREM', queue .. 'active', 0, id) > 0 then
      redis.call('SREM', queue .. 'stalled', id)
      add(why, id, detail)
    end
  end
end
`,
} as const;

/** BullMQ sets the marker, which wakes a worker up, whenever a job is taken, also where no other job waits: that worker would look in vain. */
export const UNMARK =
  "if redis.call('LLEN', queue .. 'wait') == 0 then redis.call('ZREM', queue .. 'marker', '0') end";

/**
 * One step over the keyspace of one Redis server from the cursor ARGV[1], for all queues at once: it may have many keys that are not ours. ARGV[2]: what
 * the keys of the cluster's queues begin with, ARGV[3]: the number of queues, ARGV[4]: the name of each. Returns the next cursor; the names of
 * jobs and locks, and of every key of a queue with a higher number, each after its queue; and the names of keys that were removed, each after its queue:
 * no key of a queue has such a name, or no queue such a number, which is -1 then. A name may be of any length.
 */
export const FIND_KEYS = `
local kept, removed = {}, {}
${KEY_NAMES}
local function remove(key, queue, name)
  redis.call('UNLINK', key)
  if #removed < 200 then
    removed[#removed + 1] = queue
    removed[#removed + 1] = string.sub(name, 1, 100)
  end
end
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2] .. '*}:' .. ARGV[4] .. ':*', 'COUNT', 1000)
for _, key in ipairs(page[2]) do
  local rest = string.sub(key, #ARGV[2] + 1)
  local queue, name = string.match(rest, '^(%d+)}:' .. ARGV[4] .. ':(.*)$')
  if not queue or tostring(tonumber(queue)) ~= queue or tonumber(queue) >= ${MAX_QUEUES} then
    remove(key, '-1', rest)
  elseif named(name) or named(string.match(name, '^(.*):lock$') or '')
      or (types[name] and tonumber(queue) >= tonumber(ARGV[3])) then
    kept[#kept + 1] = queue
    kept[#kept + 1] = name
  elseif not types[name] then
    remove(key, queue, name)
  end
end
return { page[1], kept, removed }
`;

/**
 * Checks jobs and locks of a queue by the names ARGV. A job in no list is put into `wait`: an add that failed half-way left it there, and would
 * swallow each further one.
 */
export const SWEEP = `
if #ARGV == 0 or redis.call('LLEN', queue .. 'wait') + redis.call('LLEN', queue .. 'active') > ${MAX_SWEPT_JOBS} then
  return #found > 0 and cjson.encode(found) or '[]'
end
local listed = {}
for _, list in ipairs({ 'wait', 'active' }) do
  for _, id in ipairs(redis.call('LRANGE', queue .. list, 0, -1)) do listed[id] = true end
end
for _, name in ipairs(ARGV) do
  local job = string.match(name, '^(.*):lock$')
  if job then
    locked(job)
  elseif not listed[name] and redis.call('EXISTS', queue .. name) == 1 and not locked(name)
      and not redis.call('ZSCORE', queue .. 'delayed', name) then
    local why, detail = misfit(name)
    if not why then
      redis.call('LPUSH', queue .. 'wait', name)
      redis.call('ZADD', queue .. 'marker', 0, '0')
    end
    add(why or 'orphan', name, detail)
  end
end
return #found > 0 and cjson.encode(found) or '[]'
`;
