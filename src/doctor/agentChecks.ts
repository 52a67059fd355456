/*
 * The database's facts about the agents of a cluster: whether their signatures are required, and whether two of them have one name.
 */
import { eq } from 'drizzle-orm';
import { readState } from '../controller/keys/signatureRequirement.ts';
import type { SignatureState } from '../controller/keys/statements.ts';
import { listTwoAgents } from '../controller/reports/evidence.ts';
import { timestamp } from '../controller/reports/text.ts';
import { cluster } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import { type CheckResult, ok, warning } from './check.ts';
import type { DoctorConfig } from './settings.ts';

type Mode = Pick<DoctorConfig, 'attribution' | 'keySecret'>;

export async function checkAgents(
  store: Store,
  { cluster: name, ...mode }: Mode & { readonly cluster: string },
): Promise<CheckResult[]> {
  const [found] = await store.query((db) =>
    db.select({ id: cluster.cluster_id }).from(cluster).where(eq(cluster.name, name)),
  );
  if (found === undefined) return [];
  return [...signatures(await readState(store, found.id), mode), ...(await twoAgents(store, found.id))];
}

/** Nothing where nobody can enrol. */
function signatures(
  { required_since, agents, holding_back, names }: SignatureState,
  { attribution, keySecret }: Mode,
): CheckResult[] {
  const name = 'signatures';
  if (required_since !== null)
    return [ok(name, `evidence without a signature has been refused since ${timestamp(required_since)}`)];
  if (keySecret === undefined) return [];
  const holding = `${holding_back} of ${agents} nodes have no valid key or sent unsigned evidence within an hour: ${listed(names, holding_back)}`;
  if (attribution === 'accept') {
    const more = holding_back === 0 ? '' : `; ${holding}`;
    const cure = 'Leave out --attribution (PLEGWATCH_ATTRIBUTION) when the rollout has ended.';
    return [warning(name, `unsigned evidence of nodes without a key is stored${more}`, cure)];
  }
  if (holding_back === 0)
    return [ok(name, 'they are not required before all nodes have had a key for an hour')];
  const cure = 'See why they do not enrol: docs/runbooks/PlegwatchNodeKeyExpiring.md.';
  return [warning(name, `they are not required yet: ${holding}`, cure)];
}

const MAX_NAMES = 5;

async function twoAgents(store: Store, clusterId: number): Promise<CheckResult[]> {
  const { rows } = await store.run(listTwoAgents, [clusterId, MAX_NAMES + 1]);
  if (rows.length === 0) return [];
  const named = rows.slice(0, MAX_NAMES).map(({ node, boots }) => {
    const since = boots.map(({ boot_id, started_at }) => `boot ${boot_id} since ${timestamp(started_at)}`);
    return `${node} (${since.join(', ')})`;
  });
  return [
    warning(
      'agents',
      `agents of two machines report under one name: ${listed(named, rows.length)}`,
      'Give each machine a node name of its own, or stop the agent that does not belong to the cluster.',
    ),
  ];
}

/** The first of `count` names. */
const listed = (names: readonly string[], count: number): string =>
  `${names.join(', ')}${names.length < count ? ', …' : ''}`;
