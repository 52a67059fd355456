/*
 * Postgres, its schema, and what the role of the controller may do there.
 */

import { createLogger } from '../platform/log.ts';
import { databaseAt } from '../store/databaseAccess.ts';
import { SCHEMA_VERSION } from '../store/migrations.ts';
import mayWriteClusterSql from '../store/sql/mayWriteCluster.sql';
import missingRightsSql from '../store/sql/missingRights.sql';
import readReportWriterSql from '../store/sql/readReportWriter.sql';
import { openStore, type Store } from '../store/store.ts';
import { attempt, type CheckResult, failed, ONE_CONTROLLER_CURE, ok, warning } from './check.ts';
import { type DoctorConfig, hasDatabase } from './settings.ts';

export const checkDatabase = (config: DoctorConfig): Promise<readonly CheckResult[]> =>
  attempt('postgres', () => checksOf(config));

async function* checksOf(config: DoctorConfig): AsyncGenerator<CheckResult> {
  if (!hasDatabase(config)) return;
  const store = await openStore({
    ...config,
    log: createLogger('fatal', 'doctor'),
    databaseMaxConnections: 1,
    applicationName: 'plegwatch doctor',
  });
  try {
    const { rows } = await store.run<{ server_version: string }>({ text: 'SHOW server_version' });
    const version = rows[0]?.server_version ?? '';
    yield ok(
      'postgres',
      `Postgres ${version} at ${databaseAt(config)} has the schema (migration ${SCHEMA_VERSION})`,
    );
    const rights = await checkRights(store, config.cluster);
    yield rights;
    if (config.cluster !== undefined && rights.status !== 'failed')
      yield* await checkReportWriters(store, config.cluster);
  } finally {
    await store.close();
  }
}

async function checkRights(store: Store, cluster: string | undefined): Promise<CheckResult> {
  const name = 'postgres rights';
  const { rows } = await store.run<{ role: string; missing: string }>({ text: missingRightsSql });
  const [first] = rows;
  if (first !== undefined) {
    return failed(
      name,
      `the role ${first.role} may not: ${rows.map(({ missing }) => missing).join(', ')}`,
      cureOf(first.role, cluster),
    );
  }
  if (cluster !== undefined) {
    const answer = await store.run<{ role: string; may: boolean }>({ text: mayWriteClusterSql }, [cluster]);
    for (const { role, may } of answer.rows) {
      if (!may)
        return failed(name, `the role ${role} may not write the cluster ${cluster}`, cureOf(role, cluster));
    }
  }
  return ok(name, 'the role may do what the controller does');
}

/** Controllers that meet in Redis are found there as well. */
async function checkReportWriters(store: Store, cluster: string): Promise<CheckResult[]> {
  const { rows } = await store.run<{ isContested: boolean }>({ text: readReportWriterSql }, [cluster]);
  if (rows[0]?.isContested !== true) return [];
  return [
    warning(
      'controller',
      `more than one controller of the cluster ${cluster} uses this database, and each writes the reports`,
      ONE_CONTROLLER_CURE,
    ),
  ];
}

const cureOf = (role: string, cluster: string | undefined) => {
  const of = cluster === undefined ? '' : `, '${cluster}'`;
  return `Run as the owner of the database: SELECT store.grant_controller('${role}'${of}).`;
};
