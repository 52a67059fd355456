/*
 * A read replica of Postgres while a controller drains full queues: how long after the primary its readers see what was written.
 *
 * The replica is made with what a server itself can do, because the package of Postgres has no pg_basebackup: a copy of the data between
 * pg_backup_start and pg_backup_stop. It then follows by streaming replication from a slot, on the same machine.
 */
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { type LocalPostgres, startPostgres } from '../../devtools/localServices/postgres.ts';
import { run } from '../../devtools/localServices/process.ts';
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { type ControllerSystem, MAX_CONNECTIONS, startControllerSystem } from './controllerSystem.ts';
import { drained, fill } from './drain.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { preparedBatches } from './preparedBatches.ts';

const QUEUES = 16;
const NODES = 100;
const RECORDS = 500;
const BATCHES_A_NODE = SHORT ? 2 : 6;
const SLOT = 'replica';
const LOOK_EVERY_MS = 2;

export const readReplica: BenchPart = {
  name: 'read-replica',
  title: 'A read replica while a controller drains its queues',
  async run() {
    const system = await startControllerSystem({ queues: QUEUES });
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-replica-'));
    let replica: LocalPostgres | undefined;
    try {
      const all = preparedBatches(NODES, 1 + BATCHES_A_NODE, RECORDS);
      await fill(system, all.slice(0, NODES));
      await drained(system);
      const [controller] = system.controllers;
      await controller?.kill('SIGSTOP');
      await fill(system, all.slice(NODES));
      replica = await startReplica(system.postgres, dir);
      log('read replica: draining');
      const began = performance.now();
      await controller?.kill('SIGCONT');
      const { lags, bytes } = await watchLag(system, replica);
      const seconds = (performance.now() - began) / 1000;
      return { rows: rowsOf(lags, bytes / seconds, (NODES * BATCHES_A_NODE * RECORDS) / seconds), plots: [] };
    } finally {
      await replica?.stop();
      await system.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  },
};

async function startReplica(primary: LocalPostgres, dir: string): Promise<LocalPostgres> {
  const { uid, gid } = statSync(join(primary.socketDir, 'data'));
  const written = (file: string, content: string) => {
    writeFileSync(join(dir, file), content, { mode: 0o600 });
    chownSync(join(dir, file), uid, gid);
  };
  const client = new Client({ connectionString: primary.url });
  await client.connect();
  try {
    await client.query(`SELECT pg_create_physical_replication_slot('${SLOT}', true)`);
    await client.query("SELECT pg_backup_start('replica', true)");
    for (const name of ['data', 'password']) await run('cp', ['-a', join(primary.socketDir, name), dir]);
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    rmSync(join(dir, 'data', 'postmaster.pid'));
    written('data/backup_label', rows[0]?.labelfile ?? '');
    written('data/standby.signal', '');
  } finally {
    await client.end();
  }
  const { username, password } = new URL(primary.url);
  return startPostgres({
    dir,
    settings: {
      primary_conninfo: `host=127.0.0.1 port=${primary.port} user=${username} password=${password} sslmode=disable`,
      primary_slot_name: SLOT,
      max_connections: MAX_CONNECTIONS,
    },
  });
}

interface Lag {
  /** How long after the primary a reader of the replica saw what was written last, in milliseconds. */
  readonly lags: readonly number[];
  /** Bytes of WAL. */
  readonly bytes: number;
}

/** Asks the primary again and again where it is, and waits until the replica is there, until the queues are empty. */
async function watchLag(system: ControllerSystem, { url }: LocalPostgres): Promise<Lag> {
  const [primary, replica] = [system.postgres.url, url].map(
    (connectionString) => new Client({ connectionString }),
  );
  if (primary === undefined || replica === undefined) throw new Error('no client');
  await Promise.all([primary.connect(), replica.connect()]);
  try {
    const position = async () => {
      const { rows } = await primary.query<{ at: string }>('SELECT pg_current_wal_flush_lsn() AS at');
      return rows[0]?.at ?? '';
    };
    const isThere = async (at: string) => {
      const { rows } = await replica.query<{ there: boolean }>(
        'SELECT pg_last_wal_replay_lsn() >= $1 AS there',
        [at],
      );
      return rows[0]?.there === true;
    };
    const first = await position();
    const lags: number[] = [];
    let isDraining = true;
    const draining = drained(system).finally(() => {
      isDraining = false;
    });
    while (isDraining) {
      const at = await position();
      const began = performance.now();
      while (!(await isThere(at))) await delay(LOOK_EVERY_MS);
      lags.push(performance.now() - began);
      await delay(LOOK_EVERY_MS);
    }
    await draining;
    const { rows } = await primary.query<{ bytes: number }>(
      'SELECT (pg_current_wal_flush_lsn() - $1::pg_lsn)::float8 AS bytes',
      [first],
    );
    return { lags, bytes: rows[0]?.bytes ?? Number.NaN };
  } finally {
    await Promise.all([primary.end(), replica.end()]);
  }
}

function rowsOf(lags: readonly number[], bytesPerSecond: number, recordsPerSecond: number): TableRow[] {
  const at = (share: number) => `${quantile(lags, share).toFixed(1)} ms`;
  return [
    {
      what: 'from a write of the primary to a reader of the replica',
      figure: `p50 ${at(0.5)}, p99 ${at(0.99)}, at most ${at(1)} (${lags.length} times)`,
    },
    {
      what: '  meanwhile',
      figure: `${Math.round(recordsPerSecond)} records/s, ${(bytesPerSecond / 1e6).toFixed(1)} MB/s of WAL`,
    },
  ];
}
