/*
 * Values at the bounds of what an agent may send and Postgres can hold: they are read, and stop no answer.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_INT4 } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createReader, type Reader } from '../../src/ui/answers/reader.ts';
import { versionsAnswers } from '../../src/ui/answers/versions.ts';
import { agentIncarnation } from '../support/batches.ts';
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
});
