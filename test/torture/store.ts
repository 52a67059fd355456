/*
 * Reads the tables of the store: every row that holds a record, the rows into which records are folded, the epochs' range sets
 * and the gaps.
 */
import { Client } from 'pg';
import type { FindingKind } from '../../src/protocol/record.ts';
import { findingMarks, gapMark } from '../support/marks.ts';
import type {
  AgentDowntime,
  CheckedRow,
  CheckedStore,
  Folded,
  MiscountedHour,
  SeqGap,
  StoredEpoch,
  UndeclaredGap,
} from './checker.ts';
import type { RowKind } from './facts.ts';
import { factsOfRow } from './facts.ts';

/** Microseconds from the epoch's start. */
const since = (column: string): string => `(extract(epoch FROM ${column} - e.started_at) * 1000000)::int8`;

/** The columns of each kind in the order of `factsOf`. */
const ROWS: Readonly<Record<RowKind, { readonly table: string; readonly columns: readonly string[] }>> = {
  container_event: {
    table: 'container_event',
    columns: [since('r.received_at'), 'r.created_ns', 'r.container_key', 'r.flags'],
  },
  relist_change: {
    table: 'relist_change',
    columns: [since('r.window_from'), since('r.window_to'), 'r.container_key', 'r.states'],
  },
  relist_minute: {
    table: 'relist_minute',
    columns: [
      since('r.ended_at'),
      ...['relists', 'errors', 'max_us', 'sandboxes', 'containers'].map((name) => `r.${name}`),
      ...['exited_sandboxes', 'exited_containers'].map((name) => `r.${name}`),
      ...['sandbox_list_bytes', 'container_list_bytes'].map((name) => `r.${name}`),
      ...['expected', 'matched', 'unobservable', 'covered_us', 'span_us'].map((name) => `r.${name}`),
      "array_to_string(r.hist, ' ')",
      '(extract(epoch FROM r.wall_at) * 1000000)::int8',
      `(SELECT coalesce(string_agg(concat_ws(' ', l.sandboxes_from, l.sandboxes_to, l.containers_from, l.containers_to, l.flags, l.events_to), ' '), '')
        FROM store.relists_of(r.lists) AS l)`,
      ...['r.kubelet_start_hist', 'r.kubelet_stop_hist'].map(
        (hist) => `coalesce(array_to_string(${hist}, ' '), '')`,
      ),
    ],
  },
  finding: {
    table: 'finding',
    columns: [
      since('r.detected_at'),
      ...['finding_id', 'kind', 'event_type', 'cause', 'container_id'].map((name) => `r.${name}`),
      ...[since('r.window_from'), since('r.window_to'), since('r.occurred_at')],
      ...['r.lateness_us', 'r.delivery_us', 'r.proof'],
    ],
  },
  mode_change: {
    table: 'mode_change',
    columns: [
      ...[since('r.at'), since('r.not_before')],
      ...['model', 'from_mode', 'to_mode', 'reason', 'proof'].map((name) => `r.${name}`),
    ],
  },
};

/** How many a histogram counts. */
const countIn = (hist: string): string => `(SELECT coalesce(sum(n), 0) FROM unnest(${hist}) AS n)`;

const HOUR_SUMS = [
  'span_us',
  'covered_us',
  'relists',
  'errors',
  'pressure_us',
  'cpu_some_us',
  'expected',
  'matched',
  'unobservable',
];

/** No minute is dropped while the torture runs. */
const MISCOUNTED = `SELECT n.name AS node, hour::text AS hour
  FROM (SELECT node_id, context_id, date_trunc('hour', minute, 'UTC') AS hour, ${HOUR_SUMS.map((name) => `sum(${name}) AS ${name}`).join(', ')},
               sum(${countIn('kubelet_start_hist')}) AS starts, sum(${countIn('kubelet_stop_hist')}) AS stops
        FROM store.relist_minute GROUP BY 1, 2, 3) m
  FULL JOIN store.relist_hour h USING (node_id, context_id, hour) JOIN store.node n USING (node_id)
  WHERE (${HOUR_SUMS.map((name) => `m.${name}`).join(', ')}, m.starts, m.stops)
    IS DISTINCT FROM (${HOUR_SUMS.map((name) => `h.${name}`).join(', ')}, ${countIn('h.kubelet_start_hist')}, ${countIn('h.kubelet_stop_hist')})`;

type StoreRow = Record<string, unknown>;

/** Reads everything in one snapshot. */
export async function readStore(url: string): Promise<CheckedStore> {
  return withClient(url, async (client) => {
    const ask = async (text: string) => (await client.query<StoreRow>(text)).rows;
    await ask('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const rows: CheckedRow[] = [];
    for (const kind of Object.keys(ROWS) as RowKind[]) rows.push(...(await readRows(client, kind)));
    const epochs = (
      await ask(`SELECT n.name AS node, e.epoch::text AS epoch,
        ARRAY(SELECT ARRAY[lower(r), upper(r) - 1] FROM unnest(e.received) AS r) AS received,
        ARRAY(SELECT ARRAY[lower(r), upper(r) - 1] FROM unnest(e.lost) AS r) AS lost
        FROM store.epoch e JOIN store.node n USING (node_id)`)
    ).map((row) => row as unknown as StoredEpoch);
    const gaps = (
      await ask(`SELECT n.name AS node, g.epoch::text AS epoch, g.cause, g.from_seq AS from, g.to_seq AS to
        FROM store.gap g JOIN store.node n USING (node_id) WHERE g.scope = 'seq' AND g.filled_at IS NULL`)
    ).map((row) => row as unknown as SeqGap);
    const downtimes = (
      await ask(`SELECT node, cause, extract(epoch FROM from_at)::float8 * 1000 AS from,
        extract(epoch FROM coalesce(to_at, now()))::float8 * 1000 AS to
        FROM plegwatch.gaps WHERE scope = 'agent'`)
    ).map((row) => row as unknown as AgentDowntime);
    const undeclared = (
      await ask(`SELECT node, scope, extract(epoch FROM from_at)::float8 * 1000 AS from,
        extract(epoch FROM to_at)::float8 * 1000 AS to FROM plegwatch.undeclared_gaps()`)
    ).map((row) => row as unknown as UndeclaredGap);
    const strangers = (
      await ask("SELECT name AS node FROM store.node WHERE name !~ '^(node|clone|poisoned)-'")
    ).map(({ node }) => String(node));
    const miscounted = (await ask(MISCOUNTED)).map((row) => row as unknown as MiscountedHour);
    return {
      rows: rows.filter(isOurs),
      epochs: epochs.filter(isOurs),
      gaps: gaps.filter(isOurs),
      downtimes: downtimes.filter(isOurs),
      undeclared: undeclared.filter(isOurs),
      miscounted: miscounted.filter(isOurs),
      strangers,
      folded: await readFolded(ask),
    };
  });
}

/** A node that started with a copied spool sends records under its own name afterwards, and an attacker under names of its own: those are not checked. */
const isOurs = ({ node }: { readonly node: string }): boolean => !/^(clone|poisoned)-/.test(node);

async function readRows(client: Client, kind: RowKind): Promise<CheckedRow[]> {
  const { table, columns } = ROWS[kind];
  const { rows } = await client.query<unknown[]>({
    text: `SELECT n.name, x.epoch::text, r.seq, ${columns.join(', ')} FROM store.${table} r
      JOIN store.context x ON x.context_id = r.context_id JOIN store.node n ON n.node_id = r.node_id
      JOIN store.epoch e ON e.node_id = r.node_id AND e.epoch = x.epoch`,
    rowMode: 'array',
  });
  return rows.map(([node, epoch, seq, ...fields]) => ({
    node: String(node),
    epoch: String(epoch),
    seq: Number(seq),
    kind,
    facts: factsOfRow(fields),
  }));
}

async function readFolded(ask: (text: string) => Promise<StoreRow[]>): Promise<Folded> {
  const sessions = await ask('SELECT epoch::text AS epoch, session_no, seq FROM store.stream_session');
  const gaps = await ask(
    "SELECT gap_id::text AS gap, to_at IS NOT NULL AS ended FROM store.gap WHERE scope <> 'seq'",
  );
  const updates = await ask(
    `SELECT DISTINCT what, finding_id::text AS finding FROM store.finding_update WHERE what IN ('resolved', 'overdue')`,
  );
  const findingsOf = (what: string) =>
    new Set(updates.filter((row) => row['what'] === what).map((row) => String(row['finding'])));
  const states = await ask('SELECT n.name AS node FROM store.node_state s JOIN store.node n USING (node_id)');
  return {
    sessions: new Map(sessions.map((row) => [`${row['epoch']} ${row['session_no']}`, Number(row['seq'])])),
    gaps: new Map(gaps.map((row) => [String(row['gap']), row['ended'] === true])),
    resolutions: findingsOf('resolved'),
    overdue: findingsOf('overdue'),
    states: new Set(states.map((row) => String(row['node']))),
  };
}

/** The causes, kinds, repairs and refusals that the store shows, of all nodes. */
export async function readMarks(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const ask = async <T extends StoreRow>(text: string) => (await client.query<T>(text)).rows;
    const gaps = await ask<{ scope: string; cause: string }>(
      'SELECT DISTINCT scope, cause FROM plegwatch.gaps',
    );
    const findings = await ask<{ kind: FindingKind; cause: string }>(
      'SELECT DISTINCT kind, cause FROM store.finding',
    );
    const others = await ask<{ mark: string }>(
      `SELECT DISTINCT 'rejected ' || reason AS mark FROM store.rejected
       UNION SELECT 'repair epoch_' || close_cause FROM store.epoch WHERE close_cause IS NOT NULL
       UNION SELECT 'repair gap_filled_at' FROM store.gap WHERE filled_at IS NOT NULL
       UNION SELECT 'repair finding_' || what FROM store.finding_update
       UNION SELECT 'hang ' || hang_verdict FROM store.relist_minute WHERE hang_verdict IS NOT NULL`,
    );
    return [
      ...gaps.map(({ scope, cause }) => gapMark(scope, cause)),
      ...findings.flatMap(findingMarks),
      ...others.map(({ mark }) => mark),
    ];
  });
}

/** The acked seq and the ack generation of an epoch, as committed. */
export interface CommittedAck {
  readonly ackedSeq: number;
  readonly ackGeneration: number;
}

/** The committed acknowledgements of all epochs. */
export async function readCommittedAcks(client: Client): Promise<Map<string, CommittedAck>> {
  const { rows } = await client.query<{ epoch: string; acked: number; generation: number }>(
    // An attacker uses epochs of others under its own names.
    `SELECT e.epoch::text AS epoch, store.acked_seq(e.received, e.lost) AS acked, e.ack_generation AS generation
     FROM store.epoch e JOIN store.node n USING (node_id) WHERE n.name NOT LIKE 'poisoned-%'`,
  );
  return new Map(
    rows.map(({ epoch, acked, generation }) => [epoch, { ackedSeq: acked, ackGeneration: generation }]),
  );
}

export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: 60_000,
    query_timeout: 240_000,
  });
  // A broken connection also rejects its pending query.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
