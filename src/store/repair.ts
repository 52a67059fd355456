/*
 * `plegwatch repair`: removes what somebody else stored in the name of a node, so that the evidence of its own agent counts again. Run by
 * hand, as the owner of the database.
 *
 *   --forget-epoch    an epoch that no agent of the node wrote: it is forgotten with its records
 *   --forget-losses   an epoch whose losses were forged: they are forgotten, and the agent sends again what its spool has
 */
import { PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { withClient } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import { explainDatabaseError } from './databaseError.ts';
import type { SqlRunner } from './runner.ts';
import { command, type Statement } from './statement.ts';
import { findEpoch, forgetEpoch, forgetLosses, relateNode } from './statements.ts';

export interface RepairOptions extends DatabaseSettings {
  readonly log: Logger;
  readonly cluster: string;
  readonly node: string;
  readonly forgetEpoch?: string | undefined;
  readonly forgetLosses?: string | undefined;
}

/** Throws SETTING_INVALID if nothing is to be forgotten, or an epoch is not one of the node. */
export async function repair(options: RepairOptions): Promise<void> {
  const { forgetEpoch: forged, forgetLosses: withForgedLosses, log, node } = options;
  if (forged === undefined && withForgedLosses === undefined) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      'Nothing to repair: neither --forget-epoch nor --forget-losses is set.',
      'Set one of them to an epoch of the node, which the view plegwatch.epochs lists.',
    );
  }
  await withClient(options, 'plegwatch repair', async (sql) => {
    try {
      await sql.run(command('BEGIN'));
      if (forged !== undefined) await forget(sql, options, forged, forgetEpoch);
      if (withForgedLosses !== undefined) await forget(sql, options, withForgedLosses, forgetLosses);
      await sql.run(command('COMMIT'));
      log.info({ node, forgetEpoch: forged, forgetLosses: withForgedLosses }, 'node repaired');
    } catch (error) {
      throw explainDatabaseError(options, error);
    }
  });
}

async function forget(
  sql: SqlRunner,
  { cluster, node }: RepairOptions,
  epoch: string,
  statement: Statement<never>,
): Promise<void> {
  const { rows } = await sql.run(findEpoch, [cluster, node, epoch]);
  const id = rows[0]?.node_id;
  if (id === undefined) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      `${epoch} is not an epoch of node ${node} of cluster ${cluster}.`,
      'The view plegwatch.epochs has the epochs of each node.',
    );
  }
  await sql.run(statement, [id, epoch]);
  await sql.run(relateNode, [id]);
}
