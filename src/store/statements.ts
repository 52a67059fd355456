/*
 * The statements of this folder, and those that several programs share, with the rows that they return.
 */
import { bool, int4, name, text, textArray } from './schema/columns.ts';
import { cluster, node } from './schema/tables.ts';
import addNodesSql from './sql/addNodes.sql';
import bindClusterSql from './sql/bindCluster.sql';
import cancelWaitingSql from './sql/cancelWaiting.sql';
import changeSettingsSql from './sql/changeSettings.sql';
import closeAbandonedSql from './sql/closeAbandoned.sql';
import createMigrationTableSql from './sql/createMigrationTable.sql';
import cutFutureTimesSql from './sql/cutFutureTimes.sql';
import deleteExpiredSql from './sql/deleteExpired.sql';
import deleteExpiredEpochsSql from './sql/deleteExpiredEpochs.sql';
import deleteGoneNodesSql from './sql/deleteGoneNodes.sql';
import enqueueReportsSql from './sql/enqueueReports.sql';
import ensureClusterSql from './sql/ensureCluster.sql';
import ensureNodeSql from './sql/ensureNode.sql';
import findEpochSql from './sql/findEpoch.sql';
import findLockHoldersSql from './sql/findLockHolders.sql';
import fleetBasisSql from './sql/fleetBasis.sql';
import forgetEpochSql from './sql/forgetEpoch.sql';
import forgetLossesSql from './sql/forgetLosses.sql';
import listClustersSql from './sql/listClusters.sql';
import listDependentsSql from './sql/listDependents.sql';
import listExpiredPartitionsSql from './sql/listExpiredPartitions.sql';
import listGroupServersSql from './sql/listGroupServers.sql';
import listGroupsSql from './sql/listGroups.sql';
import listHalfReadersSql from './sql/listHalfReaders.sql';
import listPublishedSql from './sql/listPublished.sql';
import mayWriteClusterSql from './sql/mayWriteCluster.sql';
import missingRightsSql from './sql/missingRights.sql';
import relateNodeSql from './sql/relateNode.sql';
import { command, nullable, present, rowOf, statement } from './statement.ts';

export const addNodes = command(addNodesSql);
export const bindCluster = statement(bindClusterSql, rowOf({ uid: present(cluster.uid) }));
export const enqueueReports = command(enqueueReportsSql, 'enqueue_reports');
export const ensureCluster = statement(ensureClusterSql, rowOf({ cluster_id: cluster.cluster_id }));
export const ensureNode = command(ensureNodeSql);
/** Makes the partition of a table for a day since 1970. */
export const makePartition = command("SELECT store.make_partition($1::text, date '1970-01-01' + $2::int4)");

/** For the rest of a transaction: some views and functions write times into texts. */
export const inUtc = command("SET LOCAL TIME ZONE 'UTC'");

export const listClusters = statement(listClustersSql, rowOf({ name: cluster.name, hasNodes: bool }));

/** The columns of a view of plegwatch in their order, which is that of all files of an export. */
export const readColumns = statement(
  `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
   WHERE attrelid = to_regclass('plegwatch.' || $1) AND attnum > 0 ORDER BY attnum`,
  rowOf({ name, type: text }),
);

// Used by doctor.
export const serverVersion = statement('SHOW server_version', rowOf({ server_version: text }));
export const missingRights = statement(missingRightsSql, rowOf({ role: name, missing: text }));
export const mayWriteCluster = statement(mayWriteClusterSql, rowOf({ role: name, may: bool }));

// Used by migrate.
export const hasMigrations = statement(
  "SELECT to_regclass('store.migration') IS NOT NULL AS there, to_regclass('plegwatch.clusters') IS NOT NULL AS is_fleet",
  rowOf({ there: bool, is_fleet: bool }),
);
export const changeSettings = command(changeSettingsSql);
export const createMigrationTable = command(createMigrationTableSql);

// Used by maintain.
export const findLockHolders = statement(
  findLockHoldersSql,
  rowOf({ pid: int4, role: text, application: text, tables: textArray }),
);
/** A transaction would see the sessions as they were when it first looked. */
export const lookAgain = command('SELECT pg_stat_clear_snapshot()');
export const cancelWaiting = statement(cancelWaitingSql, rowOf({ cancelled: bool }));
export const makePartitions = statement('SELECT store.make_partitions($1) AS made', rowOf({ made: int4 }));
export const listExpiredPartitions = statement(
  listExpiredPartitionsSql,
  rowOf({ of_table: name, name, pending: bool, detached: bool }),
);
export const cutFutureTimes = command(cutFutureTimesSql);
export const deleteExpired = command(deleteExpiredSql);
export const deleteExpiredEpochs = command(deleteExpiredEpochsSql);
export const deleteGoneNodes = command(deleteGoneNodesSql);
export const closeAbandoned = command(closeAbandonedSql);

// Used by repair.
export const findEpoch = statement(findEpochSql, rowOf({ node_id: node.node_id }));
export const forgetEpoch = command(forgetEpochSql);
export const forgetLosses = command(forgetLossesSql);
export const relateNode = command(relateNodeSql);

// Used by federate.
/** A group must not choose by its settings what the names in {@link listPublished} mean, or how defaults are written. */
export const inPlainSession = command(
  "BEGIN READ ONLY; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'postgres'",
);
export const fleetBasis = statement(
  fleetBasisSql,
  rowOf({
    ...{ role: name, dblink: nullable(name), may_connect: bool },
    ...{ has_evidence: bool, is_fleet: bool, has_schema: bool },
  }),
);
/** Until the transaction ends, a name without a schema is one of Postgres's own. */
export const inPostgresNames = command('SET LOCAL search_path = pg_catalog, pg_temp');
/** Until the transaction ends, no other run begins. No reader can lock this table, and no group has the name of its schema. */
export const lockFederate = command(
  `CREATE SCHEMA IF NOT EXISTS plegwatch__federate; CREATE TABLE IF NOT EXISTS plegwatch__federate.run ();
   LOCK TABLE plegwatch__federate.run IN SHARE ROW EXCLUSIVE MODE`,
);
export const listDependents = statement(listDependentsSql, rowOf({ dependent: text }));
export const listGroupServers = statement(listGroupServersSql, rowOf({ server: name, options: textArray }));
export const listPublished = statement(
  listPublishedSql,
  rowOf({ name: text, arguments: nullable(textArray), columns: textArray }),
);

// Used by commands that read a fleet.
export const listGroups = statement(
  listGroupsSql,
  rowOf({ name: text, server: textArray, user: nullable(textArray), clusters: nullable(text) }),
);
/** The roles that have a user in some groups of a fleet only, with the others. */
export const listHalfReaders = statement(listHalfReadersSql, rowOf({ role: name, lacks: textArray }));
