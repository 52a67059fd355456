/*
 * Slices of relists: what a row adds to each slice that it touches, where rows of a minute and of ten follow one another.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createReader, type Reader } from '../../src/ui/answers/reader.ts';
import { readPoolRelists, readRelists } from '../../src/ui/answers/statements.ts';
import { agentStartedAt, CLUSTER } from '../support/batches.ts';
import { commitTo } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { relistMinute } from '../support/records.ts';

const [SECOND, MINUTE] = [1_000_000, 60_000_000];
const STARTED = Math.floor(Date.now() / 3_600_000 - 2) * 3_600_000;
const at = (minute: number) => new Date(STARTED + minute * 60_000).toISOString();

/** From half a minute on: two minutes, ten calm ones, and one more. Its tasks waited for this many seconds for a processor. */
const ROWS = [
  { from: 0.5, minutes: 1, waited: 30, ms: 100, errors: 1 },
  { from: 1.5, minutes: 1, waited: 30, ms: 10, errors: 0 },
  { from: 2.5, minutes: 10, waited: 60, ms: 4, errors: 0 },
  { from: 12.5, minutes: 1, waited: 60, ms: 300, errors: 0 },
];

const rowOf = ({ from, minutes, waited, ms, errors }: (typeof ROWS)[number]): EvidenceRecord =>
  relistMinute({
    ...{ t: from * MINUTE, span: minutes * MINUTE, relists: 12 * minutes, errors, max: ms * 1000, lists: [] },
    hist: [12 * minutes],
    kubelet: {
      scraped: { from: from * MINUTE, to: (from + minutes) * MINUTE - SECOND },
      ...{ relists: 60 * minutes, hist: [60 * minutes], intervals: 0, intervalSum: 0 },
      ...{ lastSeenAge: null, discarded: null, streamErrors: null, listP99: null, resident: null },
    },
    pressure: {
      span: minutes * MINUTE,
      cpuSome: waited * SECOND,
      ...{ ioSome: 0, ioFull: 0, memorySome: 0, memoryFull: 0 },
    },
  });

let server: TestServer;
let store: Store;
let reader: Reader;
let nodeId: number | undefined;

needs('postgres')('slices of relists', () => {
  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
    reader = createReader(store, undefined, 1)(new AbortController().signal);
    const cluster = await store.ensureCluster(CLUSTER);
    const node = agentStartedAt('node-a', 1, STARTED);
    await commitTo(store, cluster, [node.batch(1, ROWS.map(rowOf))]);
    [nodeId] = (await query<{ node_id: number }>(databaseUrl, 'SELECT node_id FROM store.node')).map(
      (row) => row.node_id,
    );
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  const slices = async (from: number, to: number, seconds: number) => {
    const { rows } = await reader.read((sql) => sql.run(readRelists, [nodeId, at(from), at(to), seconds]));
    return rows.map((row) => [
      ...[(Date.parse(row.at) - STARTED) / 60_000, row.relists, row.errors, row.kubeletRelists],
      ...[row.hist[0], row.maxMs, Math.round(100 * (row.cpuSome ?? 0))],
    ]);
  };

  it('slices of a minute have its part of a row that is about more, and all of its durations', async () => {
    expect(await slices(0, 15, 60)).toEqual([
      [0, 12, 1, 60, 12, 100, 50],
      [1, 12, 0, 60, 12, 10, 50],
      ...Array.from({ length: 10 }, (_, n) => [2 + n, 12, 0, 60, 120, 4, 10]),
      [12, 12, 0, 60, 12, 300, 100],
    ]);
  });

  it('slices of more minutes have each row once', async () => {
    expect(await slices(0, 15, 300)).toEqual([
      [0, 60, 1, 300, 144, 100, 26],
      [5, 60, 0, 300, 120, 4, 10],
      [10, 36, 0, 180, 132, 300, 40],
    ]);
  });

  it('have of what began before the period and ends after it what is in it', async () => {
    expect(await slices(4, 7, 300)).toEqual([
      [0, 12, 0, 60, 120, 4, 10],
      [5, 36, 0, 180, 120, 4, 10],
    ]);
  });

  it('slices of a pool have the longest relist of each row that they touch', async () => {
    const longest = async (from: number, to: number, seconds: number) => {
      const values = [[nodeId], at(from), at(to), seconds, false, true, [nodeId]];
      const { rows } = await reader.read((sql) => sql.run(readPoolRelists, values));
      return rows.map(({ slice, maxMs }) => [slice, maxMs]).toSorted();
    };
    expect(await longest(0, 15, 300)).toEqual([
      [0, 100],
      [1, 4],
      [2, 300],
    ]);
    expect(await longest(4, 10, 120)).toEqual([
      [0, 4],
      [1, 4],
      [2, 4],
    ]);
    expect(await longest(11, 14, 180)).toEqual([[0, 300]]);
  });
});
