/*
 * The questions in lake/, asked of a lake by DuckDB: each has, on a history of two clusters and seven days, the whole answer that Postgres has to the
 * question of the same heading in docs/how-to/questions.md. test/spark/lake.test.ts does the same with Spark.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { documentedSql } from '../support/documentedQuestions.ts';
import { askDuckDb, askPostgres, lakeSql, type StoredLake, storeLake } from '../support/lake.ts';
import { needs } from '../support/needs.ts';

const DUCKDB = lakeSql('duckdb');

needs('postgres')('a lake', () => {
  let lake: StoredLake;

  beforeAll(async () => {
    lake = await storeLake();
  });
  afterAll(() => lake?.stop());

  const ask = (sql: string) => askDuckDb([`SET file_search_path = '${lake.dir}'`, ...DUCKDB.setUp, sql]);

  it('the name of a cluster stays a text that looks like a number', async () => {
    const folderOf = (name: string) => join(lake.dir, `findings/cluster=${name}`);
    cpSync(folderOf('east'), folderOf('007'), { recursive: true });
    const { rows } = await ask('SELECT DISTINCT cluster FROM findings ORDER BY cluster');
    rmSync(folderOf('007'), { recursive: true });
    expect(rows).toEqual([['007'], ['east'], ['west']]);
  });

  it.each(DUCKDB.questions)('"$heading" has the answer of Postgres in DuckDB', async ({ heading, sql }) => {
    const found = await ask(sql);
    expect(found).toEqual(await askPostgres(lake.reader, documentedSql(heading)));
    expect(found.rows.length).toBeGreaterThan(0);
  });
});
