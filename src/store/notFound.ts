/*
 * The error of a command that was asked for something that the database does not have: it names what there is.
 */
import { PlegwatchError } from '../platform/errors.ts';
import { bytewise, oneOf } from './expressions.ts';
import type { SqlRunner } from './runner.ts';
import { cluster } from './schema/tables.ts';
import { nodes } from './schema/views.ts';

const MAX_NAMES = 10;

/** `what` is the kind of thing, such as `node`; `known` are the names of those that there are, if they are few. */
export function notFound(what: string, name: string, known: readonly string[]): PlegwatchError {
  const sentence = `There is no ${what} ${name} in the database, or none that this role may read.`;
  return new PlegwatchError('NOT_FOUND', sentence, knownNames(name, known));
}

/** Returns these clusters; undefined is all that this role may read. Throws NOT_FOUND unless it may read rows of each. */
export async function requireClusters(
  sql: SqlRunner,
  asked: readonly string[] | undefined,
): Promise<readonly string[]> {
  const known = await sql.query((db) =>
    db.select({ name: cluster.name }).from(cluster).orderBy(bytewise(cluster.name)),
  );
  const names = known.map(({ name }) => name);
  const missing = asked?.find((name) => !names.includes(name));
  if (missing !== undefined) throw notFound('cluster', missing, names);
  return asked ?? names;
}

/** The nodes of this name. Throws NOT_FOUND unless there is one, or where {@link requireClusters} does. */
export async function requireNode(sql: SqlRunner, name: string, asked: readonly string[] | undefined) {
  await requireClusters(sql, asked);
  const { cluster: ofCluster, node, first_seen, last_seen } = nodes;
  const rows = await sql.query((db) =>
    db
      .select({ cluster: ofCluster, node, first_seen, last_seen })
      .from(nodes)
      .where(oneOf(ofCluster, asked ?? null))
      .orderBy(bytewise(ofCluster), bytewise(node)),
  );
  const [found, ...others] = rows.filter((row) => row.node === name);
  if (found === undefined) throw notFound('node', name, [...new Set(rows.map((row) => row.node))]);
  return [found, ...others] as const;
}

function knownNames(name: string, known: readonly string[]): string {
  if (known.length === 0) return 'Check --database-url (PLEGWATCH_DATABASE_URL) and the rights of the role.';
  const alike = known.toSorted((a, b) => sharedPrefix(b, name) - sharedPrefix(a, name));
  const shown = alike.slice(0, MAX_NAMES).join(', ');
  const rest = known.length - MAX_NAMES;
  return `Known: ${shown}${rest > 0 ? ` and ${rest} more` : ''}.`;
}

function sharedPrefix(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}
