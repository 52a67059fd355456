/*
 * The questions in lake/, asked of a lake by DuckDB: each has, on a history of two clusters and seven days, the whole answer that Postgres has to the
 * question of the same heading in docs/how-to/questions.md.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plegwatch } from '../support/commandLine.ts';
import { startServer, type TestServer } from '../support/database.ts';
import { documentedSql } from '../support/documentedQuestions.ts';
import { askDuckDb, askPostgres, lakeSql } from '../support/lake.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';

const DUCKDB = lakeSql('duckdb');
const SIZE = { nodes: 30, days: 7, lives: 120, busy: 10, step: 600 } as const;

needs('postgres')('a lake', () => {
  let server: TestServer;
  let reader: string;
  let dir: string;

  beforeAll(async () => {
    server = await startServer();
    dir = mkdtempSync(join(tmpdir(), 'lake-'));
    const databaseUrl = await server.database();
    reader = await server.reader(databaseUrl);
    await writeHistory(databaseUrl, SIZE);
    for (const view of DUCKDB.views) {
      const args = ['export', view, '--format', 'parquet', '--dir', dir, '--database-url', reader];
      const { code, stderr } = await plegwatch([...args, '--from', '-8d']);
      expect([view, code, stderr]).toEqual([view, 0, '']);
    }
  });
  afterAll(async () => {
    await server?.stop();
    if (dir !== undefined) rmSync(dir, { recursive: true });
  });

  it('the name of a cluster stays a text that looks like a number', async () => {
    cpSync(join(dir, 'findings/cluster=east'), join(dir, 'findings/cluster=007'), { recursive: true });
    const names = 'SELECT DISTINCT cluster FROM findings ORDER BY cluster';
    const { rows } = await askDuckDb([`SET file_search_path = '${dir}'`, ...DUCKDB.setUp, names]);
    rmSync(join(dir, 'findings/cluster=007'), { recursive: true });
    expect(rows).toEqual([['007'], ['east'], ['west']]);
  });

  it.each(DUCKDB.questions)('"$heading" has the answer of Postgres in DuckDB', async ({ heading, sql }) => {
    const found = await askDuckDb([`SET file_search_path = '${dir}'`, ...DUCKDB.setUp, sql]);
    expect(found).toEqual(await askPostgres(reader, documentedSql(heading)));
    expect(found.rows.length).toBeGreaterThan(0);
  });
});
