/*
 * The script with which agents add batches to a queue. They may run it, but not send one: a controller loads it into Redis, which
 * forgets it when it restarts or a replica takes over.
 */
import { addStandardJob } from 'bullmq/dist/esm/scripts/addStandardJob-9.js';
import { mastersOf, type RedisClient } from '../../redis/client.ts';

/** Loads it into every master. Loading it again changes nothing. */
export async function loadAgentScript(redis: RedisClient): Promise<void> {
  await Promise.all(mastersOf(redis).map((master) => master.script('LOAD', addStandardJob.content)));
}
