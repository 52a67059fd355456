/*
 * The questions in lake/, asked of a lake by DuckDB: each has, on a history of two clusters and seven days, the whole answer that Postgres has to the
 * question of the same heading in docs/how-to/questions.md. test/spark/lake.test.ts does the same with Spark. No other documented question is missing
 * than those that docs/how-to/lake.md excepts.
 */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOCUMENTED_QUESTIONS, documentedSql } from '../support/documentedQuestions.ts';
import { askDuckDb, askPostgres, lakeSql, type StoredLake, storeLake } from '../support/lake.ts';
import { needs } from '../support/needs.ts';

const DUCKDB = lakeSql('duckdb');
const PAGE = readFileSync(new URL('../../docs/how-to/lake.md', import.meta.url), 'utf8');

/** The documented questions that a lake does not answer, by what they are about. */
const EXCEPTED: Readonly<Record<string, readonly string[]>> = {
  'one node': [
    'What does a finding rest on?',
    'What happened to a container around a miss?',
    'What was the true exit code of a container that the API calls ContainerStatusUnknown?',
    'What happened on a node at 03:12, in order of time?',
    'What were the last events of a node?',
  ],
  'the present': [
    'Which kubelets are in fallback now, and since when?',
    // These read readiness: what was seen until now, and whether there is a stream.
    'Which nodes behave unlike the others of their runtime version?',
    'Is this node, pool or fleet safe for Evented PLEG, and with what confidence?',
    'Is this pool safe for Evented PLEG?',
    // In the last hour.
    'What were both relists like in each minute?',
    'Which nodes have no working agent?',
    'Up to when is the evidence of each running agent complete?',
  ],
  // They are found by the numbers of all records, which no view has.
  'undeclared gaps': ['Was the stream watched at that time?'],
};

const headingsOf = (questions: readonly { readonly heading: string }[]) =>
  questions.map(({ heading }) => heading);

it.each(['duckdb', 'spark'])(
  'every documented question is in lake/ for %s, in the order of the page, but for those that lake.md excepts',
  (engine) => {
    const excepted = Object.values(EXCEPTED).flat();
    const documented = headingsOf(DOCUMENTED_QUESTIONS);
    expect(documented).toEqual(expect.arrayContaining(excepted));
    expect(headingsOf(lakeSql(engine).questions)).toEqual(
      documented.filter((heading) => !excepted.includes(heading)),
    );
    for (const about of Object.keys(EXCEPTED)) expect(PAGE).toContain(about);
  },
);

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

  it('a Node that was deleted before the first record of its agent was stored has no time that could be observed', async () => {
    const { rows } = await askDuckDb([
      `SET file_search_path = '${lake.dir}'`,
      ...DUCKDB.setUp,
      `CREATE OR REPLACE VIEW nodes AS SELECT 'east' AS cluster, 'east-001' AS node, TIMESTAMPTZ '2026-11-20 22:00:00Z' AS first_seen,
                                              TIMESTAMPTZ '2026-11-20 02:00:00Z' AS deleted_at`,
      `SELECT nodes, listed_share, stream_share FROM evidence_completeness(DATE '2026-11-20', DATE '2026-11-21', NULL)`,
    ]);
    expect(rows).toEqual([['1', null, null]]);
  });

  it.each(DUCKDB.questions)('"$heading" has the answer of Postgres in DuckDB', async ({ heading, sql }) => {
    const found = await ask(lake.asExported(sql));
    expect(found).toEqual(await askPostgres(lake.reader, lake.asExported(documentedSql(heading))));
    expect(found.rows.length).toBeGreaterThan(0);
  });

  it.each(DUCKDB.questions.filter(({ sql }) => /\bpool'/.test(sql)))(
    '"$heading" has the answer of Postgres for a label whose key has dots',
    async ({ heading, sql }) => {
      const ofZone = (text: string) => text.replaceAll("pool'", "topology.kubernetes.io/zone'");
      const expected = await askPostgres(lake.reader, ofZone(lake.asExported(documentedSql(heading))));
      expect(await ask(ofZone(lake.asExported(sql)))).toEqual(expected);
      expect(expected.rows.length).toBeGreaterThan(0);
    },
  );
});
