/*
 * A history of many nodes with known truth, written straight into the tables; storedHistory.sql says what happens in it.
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

const STATEMENTS = readFileSync(new URL('storedHistory.sql', import.meta.url), 'utf8');

export async function writeHistory(
  databaseUrl: string,
  { nodes, days, lives, busy = nodes, step, untilNow = false }: HistorySize,
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
    await client.query('ANALYZE');
  } finally {
    await client.end();
  }
}
