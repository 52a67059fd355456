/*
 * The script with which agents add batches to a queue. They may run it, but not send one: a controller loads it into Redis, which
 * forgets it when it restarts or a replica takes over.
 */
import { RedisConnection } from 'bullmq';
import { Redis } from 'ioredis';
import { invariant } from '../../platform/invariant.ts';
import { mastersOf, type RedisClient } from '../../redis/client.ts';

let known: string | undefined;

/** Loads it into every master. Loading it again changes nothing. */
export async function loadAgentScript(redis: RedisClient): Promise<void> {
  const script = known ?? addingScript();
  known = script;
  await Promise.all(mastersOf(redis).map((master) => master.script('LOAD', script)));
}

/** BullMQ defines its scripts on each connection that it gets, and shows them nowhere else: this connection is closed and never opened. */
function addingScript(): string {
  let script: string | undefined;
  const closed = new Redis({ lazyConnect: true });
  closed.disconnect();
  closed.defineCommand = (name, { lua }) => {
    if (name.startsWith('addStandardJob:')) script = lua;
  };
  new RedisConnection(closed, { blocking: false, skipWaitingForReady: true, skipVersionCheck: true });
  invariant(script, 'BullMQ defines addStandardJob');
  return script;
}
