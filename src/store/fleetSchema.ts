/*
 * The schema of a fleet database: the published views and functions over the databases of all groups, under the same names.
 *
 *   a view        the rows of all groups, by foreign tables
 *   a function    called in each group with the same arguments, by dblink
 *
 * Groups may have different versions of the schema: what not all of them have is left out. A reader is in each group the role that a user mapping
 * names, so that the rights there hold here, and a role without one is refused. A group that does not answer is an error.
 *
 * The owner of a group can publish anything, and statements made of it run as the owner of the fleet. So names are quoted here, types are words, and a
 * default calls nothing but now(): anything else is left out.
 */
import { createHash } from 'node:crypto';
import { escapeIdentifier, escapeLiteral } from 'pg';
import type { DatabaseAccess } from './databaseAccess.ts';
import type { RowOf } from './statement.ts';
import type { listPublished } from './statements.ts';

/** A view of the schema plegwatch, or a function: that has arguments, if only an empty list. Both are as {@link isPlain} has them. */
export type Published = RowOf<typeof listPublished>;

export interface Group {
  readonly name: string;
  /** As options of a foreign server. */
  readonly server: Readonly<Record<string, string>>;
  readonly user: { readonly user: string; readonly password: string };
  readonly published: readonly Published[];
  /** Those with nodes. */
  readonly clusters: readonly string[];
}

/** A group's clusters are kept for when it does not answer: so that a reader of one cluster learns no other name. */
export const clusterDigest = (cluster: string): string => createHash('sha256').update(cluster).digest('hex');

/** The schema of a group's foreign tables and its foreign server have one name. */
export const serverOf = (group: Pick<Group, 'name'>): string => `plegwatch_${group.name}`;
const quotedServer = (group: Group): string => escapeIdentifier(serverOf(group));

/** A view of the fleet itself, which a group has if it is a fleet. */
const CLUSTERS = 'clusters';
const NAME = /^[a-z_][a-z0-9_]*$/;
const TYPE = String.raw`[a-z][a-z0-9_]*(?: [a-z]+)*(?:\(\d+(?:,\d+)?\))?(?: [a-z]+)*(?:\[\])*`;
const COLUMN = new RegExp(`^[a-z_][a-z0-9_]* ${TYPE}$`);
const IN_DEFAULT = new RegExp(String.raw`now\(\)|AT TIME ZONE|NULL|'[^'\\]*'|::${TYPE}|\d+|[-+() ]`, 'g');

/** Whether it is a name and a type, as of a column, and a default, as an argument may have. */
function isPlain(text: string): boolean {
  const [column = '', ...defaults] = text.split(' DEFAULT ');
  return COLUMN.test(column) && defaults.every((each) => each.replaceAll(IN_DEFAULT, '') === '');
}

/** The columns that all groups have, and those that are left out. */
export function sharedBy(groups: readonly Pick<Group, 'published'>[]): {
  shared: Published[];
  leftOut: string[];
} {
  const names = new Set(groups.flatMap(({ published }) => published.map(({ name }) => name)));
  const shared = [...names].flatMap((name) => {
    const all = groups.map(({ published }) => published.find((each) => each.name === name));
    const [one] = all;
    const asked = one?.arguments?.join();
    if (one === undefined || !NAME.test(name) || name === CLUSTERS) return [];
    if (one.arguments?.every(isPlain) === false) return [];
    if (all.some((each) => each === undefined || each.arguments?.join() !== asked)) return [];
    const columns = one.columns.filter(
      (column) => COLUMN.test(column) && all.every((each) => each?.columns.includes(column)),
    );
    return columns.length === 0 ? [] : [{ ...one, columns }];
  });
  const kept = new Set(shared.flatMap(columnsOf));
  const every = new Set(groups.flatMap(({ published }) => published.flatMap(columnsOf)));
  return { shared, leftOut: [...every].filter((column) => !kept.has(column)) };
}

/** Whether {@link viewsDdl} can list the clusters. */
export function hasNodes(shared: readonly Published[]): boolean {
  const nodes = shared.find(({ name }) => name === 'nodes');
  return (
    nodes?.arguments === null &&
    ['cluster text', 'last_seen timestamp with time zone'].every((column) => nodes.columns.includes(column))
  );
}

const columnsOf = ({ name, columns }: Published): string[] => columns.map((column) => `${name}.${column}`);

/** Rows that are fetched at once. */
const FETCH_SIZE = 10_000;

/** The options of a foreign server, from the access of this program to `database`. */
export function serverOptions(
  { host, port, options, tls: { mode, verifies, ca } }: DatabaseAccess,
  database: string,
): Record<string, string> {
  return {
    ...{ host, port: `${port}`, dbname: database },
    // Where this program verifies the certificate, a server that has no CA must refuse it.
    sslmode: verifies && mode === 'require' ? 'verify-ca' : mode,
    ...(verifies && ca === undefined ? { sslrootcert: 'system' } : {}),
    ...(options === undefined ? {} : { options }),
    // A group whose machine is gone is an error after half a minute.
    ...{ keepalives_idle: '30', tcp_user_timeout: '30000' },
    ...{ fetch_size: `${FETCH_SIZE}`, async_capable: 'true' },
  };
}

/** Options that a group may have no more. A CA that somebody named for the fleet's server stays. */
const MAY_END = [/^options=/, /^sslrootcert=system$/];

/** Statements that make a server, or set the options of one that has `existing`. */
export function serverDdl(group: Group, existing: readonly string[] | undefined): string {
  const options = (prefix: (name: string) => string) =>
    Object.entries(group.server).map(
      ([name, value]) => `${prefix(name)}${escapeIdentifier(name)} ${escapeLiteral(value)}`,
    );
  const server = quotedServer(group);
  if (existing === undefined)
    return `CREATE SERVER ${server} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (${options(() => '').join(', ')})`;
  const has = (name: string) => existing.some((each) => each.startsWith(`${name}=`));
  const ended = existing
    .filter((each) => MAY_END.some((option) => option.test(each)))
    .map((each) => each.slice(0, each.indexOf('=')))
    .filter((name) => group.server[name] === undefined);
  const changes = [
    ...options((name) => (has(name) ? 'SET ' : 'ADD ')),
    ...ended.map((name) => `DROP ${escapeIdentifier(name)}`),
  ];
  return `ALTER SERVER ${server} OPTIONS (${changes.join(', ')})`;
}

/** Whom `role` is in a group. */
export function mappingDdl(group: Group, role: string): string {
  const of = `FOR ${escapeIdentifier(role)} SERVER ${quotedServer(group)}`;
  const { user, password } = group.user;
  return `DROP USER MAPPING IF EXISTS ${of}; CREATE USER MAPPING ${of} OPTIONS (user ${escapeLiteral(user)}, password ${escapeLiteral(password)})`;
}

/** Everything over the servers. `dblink`: the schema of that extension. */
export function viewsDdl(groups: readonly Group[], shared: readonly Published[], dblink: string): string {
  const views = shared.filter((each) => each.arguments === null);
  const functions = shared.filter((each) => each.arguments !== null);
  return [
    ...groups.flatMap((group) => [
      `CREATE SCHEMA ${quotedServer(group)}`,
      `COMMENT ON SCHEMA ${quotedServer(group)} IS ${escapeLiteral(`clusters: ${group.clusters.map(clusterDigest).join(' ')}`)}`,
      ...views.map(({ name, columns }) => {
        const table = `${quotedServer(group)}.${escapeIdentifier(name)}`;
        const of = `OPTIONS (schema_name 'plegwatch', table_name ${escapeLiteral(name)})`;
        return `CREATE FOREIGN TABLE ${table} (${typesOf(columns)}) SERVER ${quotedServer(group)} ${of}`;
      }),
      // Also where somebody made the server before, with a CA.
      `GRANT USAGE ON FOREIGN SERVER ${quotedServer(group)} TO PUBLIC`,
      `GRANT USAGE ON SCHEMA ${quotedServer(group)} TO PUBLIC`,
      `GRANT SELECT ON ALL TABLES IN SCHEMA ${quotedServer(group)} TO PUBLIC`,
    ]),
    ...views.map(({ name, columns }) => {
      const rows = groups.map(
        (group) => `SELECT ${namesOf(columns)} FROM ${quotedServer(group)}.${escapeIdentifier(name)}`,
      );
      return `CREATE VIEW plegwatch.${escapeIdentifier(name)} WITH (security_invoker = true) AS ${rows.join(' UNION ALL ')}`;
    }),
    clustersView(groups),
    ...functions.map((each) => functionDdl(each, groups, dblink)),
    'GRANT USAGE ON SCHEMA plegwatch, store TO PUBLIC',
    'GRANT SELECT ON ALL TABLES IN SCHEMA plegwatch TO PUBLIC',
  ].join(';\n');
}

const quotedName = (text: string): string => escapeIdentifier(text.slice(0, text.indexOf(' ')));
const namesOf = (columns: readonly string[]): string => columns.map(quotedName).join(', ');
/** Columns or arguments, with their types. */
const typesOf = (texts: readonly string[]): string =>
  texts.map((text) => `${quotedName(text)}${text.slice(text.indexOf(' '))}`).join(', ');

/** The clusters of every group: one that is not here is in no group of this fleet. */
function clustersView(groups: readonly Group[]): string {
  const rows = groups.map(
    (group) =>
      `SELECT ${escapeLiteral(group.name)}::text AS group_name, cluster, count(*) AS nodes, max(last_seen) AS last_seen
       FROM ${quotedServer(group)}.nodes GROUP BY cluster`,
  );
  return `CREATE VIEW plegwatch.${CLUSTERS} WITH (security_invoker = true) AS ${rows.join(' UNION ALL ')}`;
}

/** Values travel as text, which the settings of the session must not change. */
function functionDdl(
  { name, arguments: args, columns }: Published,
  groups: readonly Group[],
  dblink: string,
): string {
  const own = escapeIdentifier(name);
  const asked = args ?? [];
  const call = `SELECT ${namesOf(columns)} FROM plegwatch.${own}(${asked.map(() => '%L').join(', ')})`;
  const values = asked.map((each) => `, ${own}.${quotedName(each)}`).join('');
  const rows = groups.map(
    (group) =>
      `SELECT ${namesOf(columns)} FROM ${escapeIdentifier(dblink)}.dblink(${escapeLiteral(serverOf(group))}, asked) AS answer (${typesOf(columns)})`,
  );
  // An argument and a column may have one name, which RETURNS TABLE refuses.
  return `CREATE TYPE store.${own} AS (${typesOf(columns)});
    CREATE FUNCTION plegwatch.${own}(${typesOf(asked)}) RETURNS SETOF store.${own} LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' AS $function$
    #variable_conflict use_column
    DECLARE
      asked text := format(${escapeLiteral(call)}${values});
    BEGIN
      RETURN QUERY ${rows.join(' UNION ALL ')};
    END $function$`;
}
