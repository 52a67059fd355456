/*
 * The questions in lake/, asked of a lake by Spark: each has the whole answer that Postgres has, as in test/integration/lake.test.ts. Run by
 * `make lake`.
 */
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { where } from '../../devtools/localServices/where.ts';
import { documentedSql } from '../support/documentedQuestions.ts';
import { type Answer, askPostgres, lakeSql, type StoredLake, storeLake } from '../support/lake.ts';
import { needs } from '../support/needs.ts';

const SPARK = lakeSql('spark');
const SCRIPT = join(import.meta.dirname, '../support/askSpark.py');
const MAX_ANSWERS_BYTES = 64 * 1024 * 1024;
const CLUSTERS = 'SELECT DISTINCT cluster FROM not_ready_intervals ORDER BY cluster';

needs('postgres', 'spark')('a lake that Spark reads', () => {
  let lake: StoredLake;
  /** By the place of the question. Spark takes longer to start than to answer. */
  let answers: readonly Answer[];
  let clusters: Answer | undefined;

  beforeAll(async () => {
    lake = await storeLake(lakeSql('duckdb').views);
    const ask = (questions: readonly string[]): Answer[] => {
      const input = JSON.stringify({ setUp: SPARK.setUp, questions });
      const env = { ...process.env, SPARK_LOCAL_IP: '127.0.0.1', SPARK_LOCAL_DIRS: lake.dir };
      const options = { cwd: lake.dir, input, env, stdio: 'pipe', encoding: 'utf8' } as const;
      return JSON.parse(execFileSync(where('spark'), [SCRIPT], { ...options, maxBuffer: MAX_ANSWERS_BYTES }));
    };
    answers = ask(SPARK.questions.map(({ sql }) => sql));
    const folderOf = (name: string) => join(lake.dir, `not_ready_intervals/cluster=${name}`);
    cpSync(folderOf('east'), folderOf('007'), { recursive: true });
    [clusters] = ask([CLUSTERS]);
  });
  afterAll(() => lake?.stop());

  it('the name of a cluster stays a text that looks like a number', () => {
    expect(clusters?.rows).toEqual([['007'], ['east'], ['west']]);
  });

  it.each(SPARK.questions.map(({ heading }, at) => ({ heading, at })))(
    '"$heading" has the answer of Postgres in Spark',
    async ({ heading, at }) => {
      const found = answers[at];
      expect(found).toEqual(await askPostgres(lake.reader, documentedSql(heading)));
      expect(found?.rows.length).toBeGreaterThan(0);
    },
  );

  it('Spark is asked what DuckDB is asked', () => {
    const headings = (engine: string) => lakeSql(engine).questions.map(({ heading }) => heading);
    expect(headings('spark')).toEqual(headings('duckdb'));
  });
});
