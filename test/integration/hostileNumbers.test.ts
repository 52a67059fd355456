/*
 * Values at the bounds of what an agent may send and Postgres can hold: they are read, and stop neither an answer nor an audit.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAudit } from '../../src/audit/command.ts';
import { MAX_INT4 } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createReader, type Reader } from '../../src/ui/answers/reader.ts';
import { versionsAnswers } from '../../src/ui/answers/versions.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { event, missedFinding, relistMinute } from '../support/records.ts';

needs('postgres')('values at their bounds', () => {
  let server: TestServer;
  let databaseUrl: string;
  let store: Store;
  let reader: Reader;

  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
    reader = createReader(store, undefined, 2)(new AbortController().signal);
    const most = { relists: MAX_INT4, errors: MAX_INT4 };
    const records = [event(1), event(2), missedFinding(), relistMinute(most)];
    await commitAll(databaseUrl, [agentIncarnation('node-max', 1, 120_000).batch(1, records)]);
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  test('versions are answered although the counts of a node add up to more than 2^53', async () => {
    await query(
      databaseUrl,
      "UPDATE store.relist_hour SET matched = 9223372036854775807, hour = hour - interval '2 hours'",
    );
    const { missRates } = await versionsAnswers(reader)(new URLSearchParams());
    expect(missRates).toMatchObject([{ decided: 2 ** 63, missed: 1 }]);
  });

  test.each<[string, string]>([
    ['a minute with the most relists and errors', 'SELECT'],
    ['a proof that somebody made null', "UPDATE store.finding SET proof = 'null'"],
    ['a proof that somebody made a list', "UPDATE store.finding SET proof = '[]'"],
  ])('%s does not stop the audit', async (_, change) => {
    await query(databaseUrl, change);
    const lines: string[] = [];
    await store.transaction((sql) =>
      runAudit({
        sql,
        cluster: CLUSTER,
        node: undefined,
        from: undefined,
        to: undefined,
        print: (line) => lines.push(line),
      }),
    );
    expect(lines.at(-1)).toContain('finding');
  });

  test('the epochs of all times are audited', async () => {
    const [from, to] = [new Date('-000500-01-01T00:00:00Z'), new Date('+012026-01-01T00:00:00Z')];
    const print = () => undefined;
    await store.transaction((sql) => runAudit({ sql, cluster: CLUSTER, node: undefined, from, to, print }));
  });
});
