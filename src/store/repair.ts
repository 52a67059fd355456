/*
 * `plegwatch repair`: removes what somebody else stored in the name of a node, so that the evidence of its own agent counts again. Run by
 * hand, as the owner of the database.
 *
 *   --forget-epoch    an epoch that no agent of the node wrote: it is forgotten with its records
 *   --forget-losses   an epoch whose losses were forged: they are forgotten, and the agent sends again what its spool has
 */
import type { Client } from 'pg';
import { PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { withClient } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import { explainDatabaseError } from './databaseError.ts';
import forgetEpochSql from './sql/forgetEpoch.sql';
import forgetLossesSql from './sql/forgetLosses.sql';
import relateNode from './sql/relateNode.sql';

export interface RepairOptions extends DatabaseSettings {
  readonly log: Logger;
  readonly cluster: string;
  readonly node: string;
  readonly forgetEpoch?: string | undefined;
  readonly forgetLosses?: string | undefined;
}

/** Locks the epoch, and not its node before it: ingest locks them in this order. */
const FIND_EPOCH = `SELECT n.node_id FROM store.node n
  JOIN store.cluster c ON c.cluster_id = n.cluster_id
  JOIN store.epoch e ON e.node_id = n.node_id
  WHERE c.name = $1 AND n.name = $2 AND e.epoch::text = lower($3) FOR UPDATE OF e`;

/** Throws SETTING_INVALID if nothing is to be forgotten, or an epoch is not one of the node. */
export async function repair(options: RepairOptions): Promise<void> {
  const { forgetEpoch, forgetLosses, log, node } = options;
  if (forgetEpoch === undefined && forgetLosses === undefined) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      'Nothing to repair: neither --forget-epoch nor --forget-losses is set.',
      'Set one of them to an epoch of the node, which the view plegwatch.epochs lists.',
    );
  }
  await withClient(options, 'plegwatch repair', async (client) => {
    try {
      await client.query('BEGIN');
      if (forgetEpoch !== undefined) await forget(client, options, forgetEpoch, forgetEpochSql);
      if (forgetLosses !== undefined) await forget(client, options, forgetLosses, forgetLossesSql);
      await client.query('COMMIT');
      log.info({ node, forgetEpoch, forgetLosses }, 'node repaired');
    } catch (error) {
      throw explainDatabaseError(options, error);
    }
  });
}

async function forget(
  client: Client,
  { cluster, node }: RepairOptions,
  epoch: string,
  statement: string,
): Promise<void> {
  const { rows } = await client.query<{ node_id: number }>(FIND_EPOCH, [cluster, node, epoch]);
  const id = rows[0]?.node_id;
  if (id === undefined) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      `${epoch} is not an epoch of node ${node} of cluster ${cluster}.`,
      'The view plegwatch.epochs has the epochs of each node.',
    );
  }
  await client.query(statement, [id, epoch]);
  await client.query(relateNode, [id]);
}
