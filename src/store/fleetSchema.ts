/*
 * The schema of a fleet database: the published views and functions over the databases of all groups, under the same names.
 *
 *   a view        the rows of all groups, by foreign tables
 *   a function    called in each group with the same arguments, by dblink
 *
 * Groups may have different versions of the schema: what not all of them have is left out. A reader is in each group the role that a user mapping
 * names, so that the rights there hold here, and a role without one is refused. A group that does not answer is an error.
 */
import { escapeIdentifier, escapeLiteral } from 'pg';
import type { RowOf } from './statement.ts';
import type { listPublished } from './statements.ts';

/** A view of the schema plegwatch, or a function: that has arguments. */
export type Published = RowOf<typeof listPublished>;

export interface Group {
  readonly name: string;
  /** As options of a foreign server. */
  readonly server: Readonly<Record<string, string>>;
  readonly user: { readonly user: string; readonly password: string };
  readonly published: readonly Published[];
}

/** The schema of a group's foreign tables and its foreign server have one name. */
export const serverOf = (group: Pick<Group, 'name'>): string => `plegwatch_${group.name}`;
const quotedServer = (group: Group): string => escapeIdentifier(serverOf(group));

/** The columns that all groups have, and the columns that not all of them have. */
export function sharedBy(groups: readonly Group[]): { shared: Published[]; leftOut: string[] } {
  const names = new Set(groups.flatMap(({ published }) => published.map(({ name }) => name)));
  const shared = [...names].flatMap((name) => {
    const all = groups.map(({ published }) => published.find((each) => each.name === name));
    const [one] = all;
    if (one === undefined || all.some((each) => each?.arguments !== one.arguments)) return [];
    const columns = one.columns.filter((column) => all.every((each) => each?.columns.includes(column)));
    return columns.length === 0 ? [] : [{ ...one, columns }];
  });
  const kept = new Set(shared.flatMap(columnsOf));
  const every = new Set(groups.flatMap(({ published }) => published.flatMap(columnsOf)));
  return { shared, leftOut: [...every].filter((column) => !kept.has(column)) };
}

const columnsOf = ({ name, columns }: Published): string[] => columns.map((column) => `${name}.${column}`);

/** Statements that make a server, or set the options of one that has `existing`. */
export function serverDdl(group: Group, existing: readonly string[] | undefined): string {
  const options = (prefix: (name: string) => string) =>
    Object.entries(group.server)
      .map(([name, value]) => `${prefix(name)}${escapeIdentifier(name)} ${escapeLiteral(value)}`)
      .join(', ');
  const server = quotedServer(group);
  return existing === undefined
    ? `CREATE SERVER ${server} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (${options(() => '')}); GRANT USAGE ON FOREIGN SERVER ${server} TO PUBLIC`
    : `ALTER SERVER ${server} OPTIONS (${options((name) => (existing.some((each) => each.startsWith(`${name}=`)) ? 'SET ' : 'ADD '))})`;
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
      ...views.map(({ name, columns }) => {
        const table = `${quotedServer(group)}.${escapeIdentifier(name)}`;
        const of = `OPTIONS (schema_name 'plegwatch', table_name ${escapeLiteral(name)})`;
        return `CREATE FOREIGN TABLE ${table} (${columns.join(', ')}) SERVER ${quotedServer(group)} ${of}`;
      }),
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

const namesOf = (columns: readonly string[]): string =>
  columns.map((column) => column.slice(0, column.indexOf(' '))).join(', ');

/** The clusters of every group: one that is not here is in no group of this fleet. */
function clustersView(groups: readonly Group[]): string {
  const rows = groups.map(
    (group) =>
      `SELECT ${escapeLiteral(group.name)}::text AS group_name, cluster, count(*) AS nodes, max(last_seen) AS last_seen
       FROM ${quotedServer(group)}.nodes GROUP BY cluster`,
  );
  return `CREATE VIEW plegwatch.clusters WITH (security_invoker = true) AS ${rows.join(' UNION ALL ')}`;
}

/** Values travel as text, which the settings of the session must not change. */
function functionDdl(
  { name, arguments: args, argument_names, columns }: Published,
  groups: readonly Group[],
  dblink: string,
): string {
  const own = escapeIdentifier(name);
  const names = argument_names ?? [];
  const call = `SELECT * FROM plegwatch.${own}(${names.map(() => '%L').join(', ')})`;
  const values = names.map((each) => `, ${own}.${escapeIdentifier(each)}`).join('');
  const rows = groups.map(
    (group) =>
      `SELECT ${namesOf(columns)} FROM ${escapeIdentifier(dblink)}.dblink(${escapeLiteral(serverOf(group))}, asked) AS answer (${columns.join(', ')})`,
  );
  // An argument and a column may have one name, which RETURNS TABLE refuses.
  return `CREATE TYPE store.${own} AS (${columns.join(', ')});
    CREATE FUNCTION plegwatch.${own}(${args ?? ''}) RETURNS SETOF store.${own} LANGUAGE plpgsql STABLE
    SET datestyle = 'ISO' SET intervalstyle = 'postgres' AS $function$
    #variable_conflict use_column
    DECLARE
      asked text := format(${escapeLiteral(call)}${values});
    BEGIN
      RETURN QUERY ${rows.join(' UNION ALL ')};
    END $function$`;
}
