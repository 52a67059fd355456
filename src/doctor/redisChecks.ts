/*
 * Redis, what its user may do, how it treats full memory, and whether a controller uses it.
 */
import { messageOf } from '../platform/errors.ts';
import {
  type FlowSettings,
  flowSettingsKey,
  MAX_VALUE_BYTES,
  parseFlowSettings,
} from '../protocol/redisKeys.ts';
import { millis } from '../protocol/units.ts';
import { readRedisAccess } from '../redis/access.ts';
import { checkRedis, whereOf } from '../redis/check.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import { describeNeeds, missingRights } from '../redis/rights.ts';
import { aclOf, type RedisUser, redisGrants } from '../redis/users.ts';
import { attempt, type CheckResult, failed, ok, warning } from './check.ts';
import { type DoctorConfig, hasDatabase } from './settings.ts';

export const checkQueues = (config: DoctorConfig): Promise<readonly CheckResult[]> =>
  attempt('redis', () => checksOf(config));

async function* checksOf(config: DoctorConfig): AsyncGenerator<CheckResult> {
  const { redisUrl, redisSecretDir, cluster } = config;
  if (redisUrl === undefined && redisSecretDir === undefined) return;
  await checkRedis(config);
  const where = whereOf(config, readRedisAccess(config).place);
  // Commands wait for the connection, which the check has shown to be possible.
  const redis = connectRedis(config, { maxRetry: millis(1_000), onError: () => undefined, patient: true });
  try {
    yield await checkMemory(redis, where);
    if (cluster === undefined) return;
    const flow = await readFlow(redis, cluster);
    const { node } = config;
    if (node !== undefined) {
      const rights = await checkRights(redis, 'agent', cluster);
      yield rights;
      if (rights.status !== 'failed') yield checkController(cluster, flow);
    }
    if (hasDatabase(config)) {
      const rights = await checkRights(redis, 'controller', cluster);
      yield rights;
      if (node === undefined && rights.status !== 'failed') yield checkController(cluster, flow);
    }
  } finally {
    redis.disconnect();
  }
}

async function checkMemory(redis: RedisClient, at: string): Promise<CheckResult> {
  const info = await unlessRefused(
    async () => `${await redis.info('server')}\n${await redis.info('memory')}`,
  );
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  const where = `Redis ${field('redis_version') ?? 'of unknown version'} at ${at}`;
  const policy = field('maxmemory_policy');
  const isLimited = Number(field('maxmemory') ?? 0) > 0;
  if (!isLimited || policy === undefined || policy === 'noeviction') return ok('redis', `${where} answers`);
  return warning(
    'redis',
    `${where} answers, but deletes keys of its choice when its memory is full (maxmemory-policy ${policy})`,
    'Set its maxmemory-policy to noeviction: agents then keep their evidence in the spool.',
  );
}

/** Null if no controller has published flow settings. */
async function readFlow(redis: RedisClient, cluster: string): Promise<FlowSettings | null> {
  // Both users of Redis may do this.
  const json = await unlessRefused(() => redis.getrange(flowSettingsKey(cluster), 0, MAX_VALUE_BYTES));
  const flow = parseFlowSettings(json);
  return flow.ok ? flow.value : null;
}

function checkController(cluster: string, flow: FlowSettings | null): CheckResult {
  if (flow !== null) return ok('controller', `a controller of the cluster ${cluster} uses this Redis`);
  return warning(
    'controller',
    `no controller of the cluster ${cluster} uses this Redis: evidence stays in the spools`,
    'Start the controller, and check that it has the same --cluster (PLEGWATCH_CLUSTER) and Redis.',
  );
}

async function checkRights(redis: RedisClient, program: RedisUser, cluster: string): Promise<CheckResult> {
  const name = 'redis rights';
  const user = (await unlessRefused(async () => String(await redis.call('ACL', 'WHOAMI')))) || 'USER';
  const missing = await missingRights(redis, redisGrants(program, cluster));
  if (missing === null) {
    return warning(
      name,
      'Redis does not let its user check its own rights',
      `Run ACL SETUSER ${user} +multi +discard, or look for NOPERM in the ${program}'s log.`,
    );
  }
  if (missing.needs.length === 0) return ok(name, `the user ${user} may do what the ${program} does`);
  const rules = missing.grants.flatMap(aclOf).map((rule) => (rule.includes(' ') ? `'${rule}'` : rule));
  return failed(
    name,
    `the user ${user} may not: ${describeNeeds(missing.needs)}`,
    `Run ACL SETUSER ${user} ${rules.join(' ')}`,
  );
}

/** Empty if Redis does not let us. */
async function unlessRefused(ask: () => Promise<string>): Promise<string> {
  try {
    return await ask();
  } catch (error) {
    if (/^(NOPERM|ERR)/.test(messageOf(error))) return '';
    throw error;
  }
}
