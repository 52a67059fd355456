/*
 * The stores in which a command finds what it was asked for, and the error if there is no such thing: it names what there is.
 */

import { PlegwatchError } from '../platform/errors.ts';
import { GroupError } from './databaseError.ts';
import { bytewise, oneOf } from './expressions.ts';
import { nodes } from './schema/views.ts';
import { listClusters } from './statements.ts';
import type { ReadStore } from './store.ts';

const MAX_NAMES = 10;

/** `what` is the kind of thing, such as `node`; `known` are the names of those that there are, if they are few. */
export function notFound(what: string, name: string, known: readonly string[]): PlegwatchError {
  const sentence = `There is no ${what} ${name} in the database, or none that this role may read.`;
  return new PlegwatchError('NOT_FOUND', sentence, knownNames(name, known));
}

/**
 * The stores that have rows of these clusters; undefined is all of them. Throws NOT_FOUND for a cluster of which this role may read nothing. A group of a
 * fleet that does not answer is an error, unless others have all clusters that are asked for, and it had none of them.
 */
export async function storesOf<P extends Pick<ReadStore, 'transaction'>>(
  store: { parts(): Promise<readonly P[]> },
  asked: readonly string[] | undefined,
): Promise<readonly P[]> {
  const parts = await store.parts();
  const answers = await Promise.allSettled(
    parts.map((part) => part.transaction((sql) => sql.run(listClusters))),
  );
  const known = parts.flatMap((part, at) => {
    const answer = answers[at];
    return answer?.status === 'fulfilled' ? answer.value.rows.map((row) => ({ ...row, part })) : [];
  });
  const isKnown = (asked ?? []).every((each) =>
    known.some(({ name, hasNodes }) => name === each && hasNodes),
  );
  for (const answer of answers) {
    if (answer.status === 'fulfilled') continue;
    const mayHave = answer.reason instanceof GroupError ? answer.reason.mayHave : () => true;
    if (!isKnown || asked === undefined || asked.some(mayHave)) throw answer.reason;
  }
  const missing = asked?.find((each) => !known.some(({ name }) => name === each));
  if (missing !== undefined)
    throw notFound('cluster', missing, [...new Set(known.map(({ name }) => name))].sort());
  if (asked === undefined) return parts;
  const having = asked.flatMap((each) => {
    const named = known.filter(({ name }) => name === each);
    // A cluster whose readers are named has a row where nothing else is of it.
    const withNodes = named.filter(({ hasNodes }) => hasNodes);
    return withNodes.length > 0 ? withNodes : named;
  });
  return parts.filter((part) => having.some((each) => each.part === part));
}

/** The nodes of this name, each with the store that has it. Throws NOT_FOUND unless there is one, or where {@link storesOf} does. */
export async function nodesNamed(store: ReadStore, name: string, asked: readonly string[] | undefined) {
  const { cluster: ofCluster, first_seen, last_seen } = nodes;
  const stores = await storesOf(store, asked);
  const parts = await inEach(stores, async (part) => {
    const rows = await part.query((db) =>
      db
        .select({ cluster: ofCluster, node: nodes.node, first_seen, last_seen })
        .from(nodes)
        .where(oneOf(ofCluster, asked ?? null))
        .orderBy(bytewise(ofCluster), bytewise(nodes.node)),
    );
    return rows.map((row) => ({ ...row, store: part }));
  });
  const rows = parts.flat();
  const [found, ...others] = rows.filter((row) => row.node === name);
  if (found === undefined) throw notFound('node', name, [...new Set(rows.map((row) => row.node))]);
  return [found, ...others] as const;
}

/** The sentence of an error about something of which only one can be meant. */
export const groupsHave = (groups: readonly Pick<ReadStore, 'name'>[], what: string): string =>
  `The groups ${groups.map(({ name }) => name).join(' and ')} have ${what}.`;

/** What `read` reads in each store. */
export const inEach = <T>(
  stores: readonly ReadStore[],
  read: (store: ReadStore) => Promise<T>,
): Promise<T[]> => Promise.all(stores.map(read));

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
