/*
 * The questions in lake/, asked of a lake by Spark: each has the whole answer that Postgres has, as in test/integration/lake.test.ts. Run by
 * `make lake`.
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { documentedSql } from '../support/documentedQuestions.ts';
import { type Answer, askPostgres, askSpark, lakeSql, type StoredLake, storeLake } from '../support/lake.ts';
import { needs } from '../support/needs.ts';

const SPARK = lakeSql('spark');
const CLUSTERS = 'SELECT DISTINCT cluster FROM not_ready_intervals ORDER BY cluster';

needs('postgres', 'spark')('a lake that Spark reads', () => {
  let lake: StoredLake;
  /** By the place of the question. */
  let answers: readonly Answer[];
  let clusters: Answer | undefined;

  beforeAll(async () => {
    lake = await storeLake();
    answers = askSpark(
      lake.dir,
      SPARK.questions.map(({ sql }) => lake.asExported(sql, 'spark')),
    );
    const folderOf = (name: string) => join(lake.dir, `not_ready_intervals/cluster=${name}`);
    for (const name of ['007', '%6eull']) cpSync(folderOf('east'), folderOf(name), { recursive: true });
    [clusters] = askSpark(lake.dir, [CLUSTERS]);
  });
  afterAll(() => lake?.stop());

  it('the name of a cluster stays a text that looks like a number or like no value', () => {
    expect(clusters?.rows).toEqual([['007'], ['east'], ['null'], ['west']]);
  });

  it.each(SPARK.questions.map(({ heading }, at) => ({ heading, at })))(
    '"$heading" has the answer of Postgres in Spark',
    async ({ heading, at }) => {
      const found = answers[at];
      expect(found).toEqual(await askPostgres(lake.reader, lake.asExported(documentedSql(heading))));
      expect(found?.rows.length).toBeGreaterThan(0);
    },
  );
});
