/*
 * The queries of the runbooks are run: nobody has time to repair them when an alert fires.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';

const RUNBOOKS = new URL('../../docs/runbooks', import.meta.url).pathname;

const statements = readdirSync(RUNBOOKS).flatMap((page) => {
  const text = readFileSync(join(RUNBOOKS, page), 'utf8');
  const blocks = [...text.matchAll(/^```sql\n(.*?)^```/gms)].map(([, sql = '']) => sql);
  return blocks
    .flatMap((block) => block.split(/;\n+/))
    .flatMap((sql) => (sql === '' ? [] : [[page, sql] as const]));
});

needs('postgres')('the runbooks', () => {
  let server: TestServer;
  let databaseUrl: string;

  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
  });
  afterAll(() => server?.stop());

  test.each(statements)('Postgres runs a query of %s', async (_page, sql) => {
    expect(await query(databaseUrl, sql)).toBeInstanceOf(Array);
  });
});
