/*
 * A migrated database for tests: its owner has no other rights, so that every test also shows that no superuser is
 * needed.
 */
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import type { LocalPostgres } from '../../devtools/localServices/postgres.ts';
import { migrate } from '../../src/store/migrate.ts';
import type { SqlRunner } from '../../src/store/runner.ts';
import { statement } from '../../src/store/statement.ts';
import { createDatabase, startTestPostgres } from './preparedPostgres.ts';
import { query } from './query.ts';

export { query };

export const silent = pino({ level: 'silent' });

export interface TestServer {
  readonly part: LocalPostgres;
  /** An empty database and the URL of its owner. */
  emptyDatabase(): Promise<string>;
  /** A migrated database. */
  database(queues?: number): Promise<string>;
  /** Creates a role with no right but LOGIN and returns its URL for the database. */
  role(databaseUrl: string, name: string): Promise<string>;
  /** Creates a role that may read every cluster, and nothing else. */
  reader(databaseUrl: string): Promise<string>;
  stop(): Promise<void>;
}

export async function startServer(): Promise<TestServer> {
  const part = await startTestPostgres();
  let count = 0;
  const newDatabase = async (migrated: boolean) => {
    const name = `t${++count}`;
    const password = randomBytes(8).toString('hex');
    await query(part.url, `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`);
    await createDatabase(part.url, name, name, migrated);
    return withUser(part.url, name, password, name);
  };
  const role = async (databaseUrl: string, prefix: string) => {
    const name = `${prefix}_${++count}`;
    const password = randomBytes(8).toString('hex');
    await query(part.url, `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`);
    return withUser(databaseUrl, name, password);
  };
  return {
    part,
    emptyDatabase: () => newDatabase(false),
    async database(queues = 2) {
      const databaseUrl = await newDatabase(true);
      await migrate({ databaseUrl, queues, log: silent });
      await query(databaseUrl, "INSERT INTO store.cluster (name) VALUES ('test')");
      return databaseUrl;
    },
    role,
    async reader(databaseUrl) {
      const reader = await role(databaseUrl, 'reader');
      await query(databaseUrl, 'SELECT store.grant_reader($1)', [new URL(reader).username]);
      return reader;
    },
    stop: () => part.stop(),
  };
}

function withUser(databaseUrl: string, user: string, password: string, database?: string): string {
  const url = new URL(databaseUrl);
  url.username = user;
  url.password = password;
  if (database !== undefined) url.pathname = `/${database}`;
  return url.href;
}

/** Runs a statement on a connection of a store; its rows are not checked. */
export async function runText<R extends Record<string, unknown>>(
  sql: Pick<SqlRunner, 'run'>,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  return (await sql.run(statement(text, { fields: {}, read: (row) => row as R }), values)).rows;
}
