/*
 * A history of many nodes with known truth, written straight into the tables; storedHistory.sql says what happens in it. Calm nodes beside them, which
 * cost little to write, make a large fleet of it (calmNodes.sql).
 */
import { readFileSync } from 'node:fs';
import { Client } from 'pg';

export interface HistorySize {
  /** Nodes of each of two clusters. */
  readonly nodes: number;
  readonly days: number;
  /** Pods that start and end on a node in a day. */
  readonly lives: number;
  /** How many nodes of a cluster have so many; each of the others has a fifth. Default: all. */
  readonly busy?: number;
  /** How many seconds a minute's record covers; 60 in reality. */
  readonly step: number;
  /** The last day is the present one, of which what is past is stored. Default: it ended at midnight. */
  readonly untilNow?: boolean;
}

export interface CalmSize {
  readonly nodes: number;
  readonly clusters: number;
  /** The last days of which their minutes are stored; their hours are stored of all. */
  readonly minuteDays: number;
}

const textOf = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const STATEMENTS = textOf('storedHistory.sql');
const CALM_STATEMENTS = textOf('calmNodes.sql');

export async function writeHistory(
  databaseUrl: string,
  { nodes, days, lives, busy = nodes, step, untilNow = false }: HistorySize,
  calm?: CalmSize,
): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(
      'CREATE TEMP TABLE size (nodes int4, days int4, lives int4, busy int4, step int4, until_now bool)',
    );
    const size = [nodes, days, lives, busy, step, untilNow];
    await client.query('INSERT INTO size VALUES ($1, $2, $3, $4, $5, $6)', size);
    await client.query(STATEMENTS);
    if (calm !== undefined) {
      await client.query('CREATE TEMP TABLE calm (nodes int4, clusters int4, minute_days int4)');
      await client.query('INSERT INTO calm VALUES ($1, $2, $3)', [
        calm.nodes,
        calm.clusters,
        calm.minuteDays,
      ]);
      await client.query(CALM_STATEMENTS);
    }
    // As autovacuum does with a day that is over: a BRIN index has no rows before.
    await client.query('VACUUM (ANALYZE)');
  } finally {
    await client.end();
  }
}
