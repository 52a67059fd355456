/*
 * A fleet database: each of its groups, whether its own server reaches them, and what would make an answer smaller or a reader refused.
 */
import { databaseAt } from '../store/databaseAccess.ts';
import { explainDatabaseError, reasonOf } from '../store/databaseError.ts';
import { type GroupStore, openFleet } from '../store/fleet.ts';
import { sharedBy } from '../store/fleetSchema.ts';
import { SCHEMA_VERSION } from '../store/migrations.ts';
import { command } from '../store/statement.ts';
import {
  inPlainSession,
  listClusters,
  listHalfReaders,
  listPublished,
  serverVersion,
} from '../store/statements.ts';
import type { LongReadStore, StoreOptions } from '../store/store.ts';
import { type CheckResult, failed, ok, warning } from './check.ts';

interface CheckedGroup {
  readonly name: string;
  readonly clusters: readonly string[];
  readonly published: Awaited<ReturnType<typeof publishedBy>>;
}

const AGAIN = 'Run plegwatch federate again, with all groups.';
const MAX_NAMES = 10;

export async function* checkFleet(options: StoreOptions): AsyncGenerator<CheckResult> {
  const fleet = openFleet(options);
  try {
    const groups = await fleet.parts();
    const names = groups.map(({ name }) => name);
    yield ok(
      'fleet',
      `the database at ${databaseAt(options)} is that of a fleet of ${groups.length}: ${names.join(', ')}`,
    );
    const checked: CheckedGroup[] = [];
    for (const group of groups) yield await checkGroup(group, options, checked);
    const whole = checked.length === groups.length;
    if (whole) yield await checkServer(fleet);
    yield* checkClusters(checked);
    if (whole) yield* checkColumns(await publishedBy(fleet), checked);
    const { rows } = await fleet.run(listHalfReaders, [names]);
    for (const { role, lacks } of rows)
      yield warning(
        'fleet readers',
        `the role ${role} is refused: it has no user in ${lacks.map((name) => `group ${name}`).join(', ')}`,
        `Run plegwatch federate --reader ${role} with its users of every group, or drop its user mappings.`,
      );
  } finally {
    await fleet.close();
  }
}

/** Adds the group to those that were `checked` if it answers. */
async function checkGroup(
  group: GroupStore,
  options: StoreOptions,
  checked: CheckedGroup[],
): Promise<CheckResult> {
  const name = `group ${group.name}`;
  try {
    const { rows } = await group.run(serverVersion);
    const [clusters, published] = [await clustersIn(group), await publishedBy(group)];
    checked.push({ name: group.name, clusters, published });
    const version = rows[0]?.server_version ?? '';
    return ok(
      name,
      `Postgres ${version} has the schema (migration ${SCHEMA_VERSION}); clusters: ${clusters.join(', ') || 'none'}`,
    );
  } catch (error) {
    const { code, message, cure } = explainDatabaseError(options, error);
    return { name, status: 'failed', message, cure, code };
  }
}

/** Whether the server of the fleet database reaches the groups as we do. */
async function checkServer(fleet: Pick<LongReadStore, 'run'>): Promise<CheckResult> {
  try {
    await fleet.run(command('SELECT FROM plegwatch.clusters'));
    return ok('fleet server', 'it reads every group');
  } catch (error) {
    return failed(
      'fleet server',
      `it cannot read a group: ${reasonOf(error)}`,
      'It must reach every group as this program does, under the host and port for plegwatch federate.',
    );
  }
}

function* checkClusters(groups: readonly CheckedGroup[]): Generator<CheckResult> {
  for (const cluster of new Set(groups.flatMap(({ clusters }) => clusters))) {
    const having = groups.filter(({ clusters }) => clusters.includes(cluster)).map(({ name }) => name);
    if (having.length > 1)
      yield warning(
        'fleet clusters',
        `the groups ${having.join(' and ')} have the cluster ${cluster}: it is counted twice, and nobody can say which one is meant`,
        'Let one controller write a cluster, into one group; take its rights in the other group from the fleet.',
      );
  }
}

/** Whether the views of the fleet are those that its groups have. */
function* checkColumns(
  own: CheckedGroup['published'],
  groups: readonly CheckedGroup[],
): Generator<CheckResult> {
  const { shared, leftOut } = sharedBy(groups);
  const columnsOf = (published: typeof own) =>
    published
      .filter(({ name }) => name !== 'clusters')
      .flatMap(({ name, columns }) => columns.map((column) => `${name}.${column}`));
  const [made, possible] = [new Set(columnsOf(own)), new Set(columnsOf(shared))];
  const changed = [...new Set([...made, ...possible])].filter(
    (each) => made.has(each) !== possible.has(each),
  );
  if (changed.length > 0)
    yield warning('fleet views', `the groups have changed since it was made: ${few(changed)}`, AGAIN);
  if (leftOut.length > 0)
    yield warning(
      'fleet views',
      `groups of different versions do not share ${few(leftOut)}`,
      'Run plegwatch migrate in each group, then plegwatch federate.',
    );
}

const publishedBy = ({ withClient }: Pick<LongReadStore, 'withClient'>) =>
  withClient(async (sql) => {
    await sql.run(inPlainSession);
    return (await sql.run(listPublished)).rows;
  });

const clustersIn = async (group: GroupStore): Promise<readonly string[]> =>
  (await group.run(listClusters)).rows.flatMap(({ name, hasNodes }) => (hasNodes ? name : [])).sort();

const few = (names: readonly string[]): string =>
  `${names.slice(0, MAX_NAMES).map(withoutType).join(', ')}${names.length > MAX_NAMES ? ', …' : ''}`;

const withoutType = (column: string): string => column.replace(/ .*/, '');
