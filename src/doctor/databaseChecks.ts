/*
 * Postgres, its schema, and what the role of the controller may do there.
 */

import { and, eq, sql } from 'drizzle-orm';
import { contestedMs } from '../controller/leader/lease.ts';
import { createLogger } from '../platform/log.ts';
import { databaseAt } from '../store/databaseAccess.ts';
import { FleetError } from '../store/databaseError.ts';
import { SCHEMA_VERSION } from '../store/migrations.ts';
import { cluster, leader } from '../store/schema/tables.ts';
import { mayWriteCluster, missingRights, serverVersion } from '../store/statements.ts';
import { openStore, type Store } from '../store/store.ts';
import { checkAgents } from './agentChecks.ts';
import { attempt, type CheckResult, failed, ONE_CONTROLLER_CURE, ok, warning } from './check.ts';
import { checkFleet } from './fleetChecks.ts';
import { type DoctorConfig, hasDatabase } from './settings.ts';

export const checkDatabase = (config: DoctorConfig): Promise<readonly CheckResult[]> =>
  attempt('postgres', () => checksOf(config));

async function* checksOf(config: DoctorConfig): AsyncGenerator<CheckResult> {
  if (!hasDatabase(config)) return;
  const options = {
    ...config,
    log: createLogger('fatal', 'doctor'),
    databaseMaxConnections: 1,
    applicationName: 'plegwatch doctor',
  };
  const store = await openStore(options).catch((error: unknown) => {
    if (error instanceof FleetError) return undefined;
    throw error;
  });
  if (store === undefined) return yield* checkFleet(options);
  try {
    const { rows } = await store.run(serverVersion);
    const version = rows[0]?.server_version ?? '';
    yield ok(
      'postgres',
      `Postgres ${version} at ${databaseAt(config)} has the schema (migration ${SCHEMA_VERSION})`,
    );
    const rights = await checkRights(store, config.cluster);
    yield rights;
    if (config.cluster === undefined || rights.status === 'failed') return;
    yield* await checkLeader(store, config.cluster);
    yield* await checkAgents(store, { ...config, cluster: config.cluster });
  } finally {
    await store.close();
  }
}

async function checkRights(store: Store, of: string | undefined): Promise<CheckResult> {
  const name = 'postgres rights';
  const { rows } = await store.run(missingRights);
  const [first] = rows;
  if (first !== undefined) {
    return failed(
      name,
      `the role ${first.role} may not: ${rows.map(({ missing }) => missing).join(', ')}`,
      cureOf(first.role, of),
    );
  }
  if (of !== undefined) {
    const answer = await store.run(mayWriteCluster, [of]);
    const refused = answer.rows.find(({ may }) => !may)?.role;
    if (refused !== undefined)
      return failed(name, `the role ${refused} may not write the cluster ${of}`, cureOf(refused, of));
  }
  return ok(name, 'the role may do what the controller does');
}

/** Whether the latest term says that two leaders depose each other. */
async function checkLeader(store: Store, name: string): Promise<CheckResult[]> {
  const isRecent = sql`${leader.began_at} > now() - ${contestedMs()} * interval '1 millisecond'`;
  const contested = await store.query((db) =>
    db
      .select({ term: leader.term })
      .from(leader)
      .innerJoin(cluster, eq(cluster.cluster_id, leader.cluster_id))
      .where(and(eq(cluster.name, name), leader.is_contested, isRecent)),
  );
  if (contested.length === 0) return [];
  return [
    warning(
      'controller',
      `more than one controller of the cluster ${name} uses this database, and each writes the reports`,
      ONE_CONTROLLER_CURE,
    ),
  ];
}

const cureOf = (role: string, cluster: string | undefined) => {
  const of = cluster === undefined ? '' : `, '${cluster}'`;
  return `Run as the owner of the database: SELECT store.grant_controller('${role}'${of}).`;
};
