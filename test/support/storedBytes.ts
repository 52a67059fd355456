/*
 * How many bytes of Postgres a record takes: the records of nodes that replace pods, stored through the committer as controllers store them.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  type ContainerIdentity,
  EVENT_TYPES,
  type EvidenceRecord,
  type PlegState,
  type RecordOf,
} from '../../src/protocol/record.ts';
import { openStore } from '../../src/store/store.ts';
import { agentIncarnation } from './batches.ts';
import { createCommitter } from './committed.ts';
import { query, silent } from './database.ts';

const DAY_MS = 86_400_000;
const STOPPED = EVENT_TYPES.indexOf('STOPPED');

export interface TrafficRates {
  readonly nodes: number;
  readonly minutes: number;
  /** The nodes send a record of the last this many of these minutes too. */
  readonly recorded: number;
  readonly pods: number;
  /** A node starts a pod, and ends another one, once in this many minutes. */
  readonly minutesAPod: number;
  readonly relistPeriodMs: number;
  /** Nothing happens, so that this many minutes are one record. Default 1. */
  readonly calmMinutes?: number;
}

interface RelationBytes {
  readonly table: string;
  /** `heap`, `toast` or the name of an index. */
  readonly part: string;
  readonly bytes: number;
}

type StoredTable = 'container_event' | 'container' | 'relist_change' | 'relist_minute' | 'relist_hour';

export interface StoredBytes {
  readonly relations: readonly RelationBytes[];
  /** Rows by table. */
  readonly rows: Readonly<Record<StoredTable, number>>;
  /** Bytes of a row by table, without the four that point to it. */
  readonly row: Readonly<Record<StoredTable, number>>;
  /** Bytes of WAL, with everything that a batch changes of its node and epoch. */
  readonly wal: { readonly events: number; readonly minutes: number };
}

interface Pod {
  readonly sandbox: ContainerIdentity;
  readonly container: ContainerIdentity;
}

/** Stores what nodes would have sent since yesterday's midnight, for a day at most, and measures it. */
export async function measureBytes(databaseUrl: string, rates: TrafficRates): Promise<StoredBytes> {
  const store = await openStore({ databaseUrl, log: silent });
  try {
    let seconds = 0;
    // A clock on which each group is due at once.
    const commitTogether = await createCommitter(store, store, () => {
      seconds += 1;
      return 1_000 * seconds;
    });
    // Since yesterday's midnight: names are stored once a day, so a run that goes on after a midnight has more of them.
    const agoMs = DAY_MS + (Date.now() % DAY_MS);
    const nodes = Array.from({ length: rates.nodes }, (_, i) => new TrafficNode(i, agoMs, rates));
    const commit = async (recordsOf: (node: TrafficNode) => readonly EvidenceRecord[]) => {
      const batches = nodes.flatMap((node) => {
        const records = recordsOf(node);
        return records.length === 0 ? [] : [node.batch(records)];
      });
      const outcomes = await commitTogether(batches);
      const other = outcomes.find((kind) => kind !== 'committed');
      if (other !== undefined) throw new Error(`a batch was ${other}`);
    };
    const wal = { events: 0, minutes: 0 };
    const logged = async (what: keyof typeof wal, work: () => Promise<void>) => {
      const before = await walBytes(databaseUrl);
      await work();
      wal[what] += (await walBytes(databaseUrl)) - before;
    };
    for (let minute = 0; minute < rates.minutes; minute += 1) {
      await logged('events', async () => {
        await commit((node) => node.endPod(minute));
        await commit((node) => node.startPod(minute));
      });
      const { calmMinutes = 1 } = rates;
      if (minute < rates.minutes - rates.recorded || minute % calmMinutes > 0) continue;
      await logged('minutes', () =>
        commit((node) => [calmMinutes > 1 ? node.calmMinutes(minute, calmMinutes) : node.minute(minute)]),
      );
    }
    const relations = await query<{ table: string; part: string; bytes: string }>(databaseUrl, RELATIONS);
    const of = async (table: StoredTable) => {
      const text = `SELECT count(*)::int4 AS rows, avg(pg_column_size(r.*))::float8 AS bytes FROM store.${table} r`;
      const [found] = await query<{ rows: number; bytes: number }>(databaseUrl, text);
      return found ?? { rows: 0, bytes: 0 };
    };
    const [container_event, container, relist_change, relist_minute, relist_hour] = [
      await of('container_event'),
      await of('container'),
      await of('relist_change'),
      await of('relist_minute'),
      await of('relist_hour'),
    ];
    const tables = { container_event, container, relist_change, relist_minute, relist_hour };
    const each = (value: (table: { rows: number; bytes: number }) => number) => ({
      container_event: value(tables.container_event),
      container: value(tables.container),
      relist_change: value(tables.relist_change),
      relist_minute: value(tables.relist_minute),
      relist_hour: value(tables.relist_hour),
    });
    return {
      relations: relations.map((one) => ({ ...one, bytes: Number(one.bytes) })),
      rows: each(({ rows }) => rows),
      row: each(({ bytes }) => bytes),
      wal,
    };
  } finally {
    await store.close();
  }
}

const walBytes = async (databaseUrl: string): Promise<number> => {
  const text = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS bytes";
  return (await query<{ bytes: number }>(databaseUrl, text))[0]?.bytes ?? 0;
};

const RELATIONS = `
  WITH partition AS (
    SELECT oid, reltoastrelid, regexp_replace(relname, '_\\d{6,8}$', '') AS "table"
    FROM pg_class WHERE relnamespace = 'store'::regnamespace AND relkind = 'r' AND relname ~ '_\\d{6,8}$' AND pg_relation_size(oid) > 0
  ), part AS (
    SELECT "table", 'heap' AS part, pg_relation_size(oid) AS bytes FROM partition
    UNION ALL
    SELECT "table", 'toast', pg_total_relation_size(reltoastrelid) FROM partition WHERE pg_relation_size(reltoastrelid) > 0
    UNION ALL
    SELECT p."table", regexp_replace(x.indexrelid::regclass::text, '^store\\.' || p."table" || '_\\d+_', ''), pg_relation_size(x.indexrelid)
    FROM partition p JOIN pg_index x ON x.indrelid = p.oid
  )
  SELECT "table", part, sum(bytes)::text AS bytes FROM part GROUP BY "table", part ORDER BY "table", part <> 'heap', part`;

/** A node that replaces pods, and what it sends. */
export class TrafficNode {
  readonly #agent: ReturnType<typeof agentIncarnation>;
  readonly #rates: TrafficRates;
  readonly #no: number;
  readonly #pods: Pod[];
  readonly #random: () => number;
  readonly #startedUs: number;
  #seq = 1;

  constructor(no: number, agoMs: number, rates: TrafficRates) {
    this.#agent = agentIncarnation(`node-${no}.example.internal`, 1, agoMs);
    this.#startedUs = (Date.now() - agoMs) * 1000;
    this.#rates = rates;
    this.#no = no;
    this.#random = randomFrom(no + 1);
    this.#pods = Array.from({ length: rates.pods }, (_, i) => podOf(`${no}/${-i}`));
  }

  batch(records: readonly EvidenceRecord[]) {
    const first = this.#seq;
    this.#seq += records.length;
    const mentioned = new Set(records.flatMap((each) => ('containerId' in each ? [each.containerId] : [])));
    const objects = [...this.#pods, ...this.#ended]
      .flatMap(({ sandbox, container }) => [sandbox, container])
      .filter(({ id }) => mentioned.has(id));
    return this.#agent.batch(first, records, { objects });
  }

  #ended: Pod[] = [];

  startPod(minute: number): EvidenceRecord[] {
    if (!this.#isDue(minute)) return [];
    const pod = podOf(`${this.#no}/${minute}`);
    this.#pods.push(pod);
    return this.#transitions(minute * 60e6 + 25e6, [
      [pod.sandbox, 0, 0],
      [pod.sandbox, 1, 80_000, 'non-existent', 'running'],
      [pod.container, 0, 700_000],
      [pod.container, 1, 780_000, 'non-existent', 'running'],
    ]);
  }

  endPod(minute: number): EvidenceRecord[] {
    const pod = this.#isDue(minute) ? this.#pods.shift() : undefined;
    this.#ended = pod === undefined ? [] : [pod];
    if (pod === undefined) return [];
    return this.#transitions(minute * 60e6 + 5e6, [
      [pod.container, 2, 0, 'running', 'exited'],
      [pod.sandbox, 2, 400_000, 'running', 'exited'],
      [pod.container, 3, 1_900_000, 'exited', 'non-existent'],
      [pod.sandbox, 3, 2_600_000, 'exited', 'non-existent'],
    ]);
  }

  minute(minute: number): RecordOf<'relist_minute'> {
    const { relistPeriodMs, pods } = this.#rates;
    const relists = Math.floor(60_000 / relistPeriodMs);
    let eventsTo = -Math.round(this.#random() * 200e6);
    let at = Math.round(this.#random() * relistPeriodMs * 500);
    const lists: number[] = [];
    for (let i = 0; i < relists; i += 1) {
      // Timers are late by a millisecond at most; calls take one to three, as containerd's do with some dozens of pods.
      const from = at + Math.round(this.#random() * 1_000);
      const to = from + this.#duration(1_100);
      const containersFrom = to + 30 + Math.round(this.#random() * 40);
      if (this.#random() < 0.05) eventsTo = from - Math.round(this.#random() * 1e6);
      lists.push(from, to, containersFrom, containersFrom + this.#duration(1_700), 0, eventsTo);
      at += relistPeriodMs * 1000;
    }
    const due = this.#isDue(minute) ? 8 : 0;
    const t = minute * 60e6 + 1_000 + Math.round(this.#random() * 5_000);
    const span = 60e6 + Math.round(this.#random() * 3_000);
    const hist = Array.from({ length: 24 }, () => 0);
    for (const bucket of [2, 3, 3, 4]) hist[bucket] = (hist[bucket] ?? 0) + Math.floor(relists / 4);
    return {
      type: 'relist_minute',
      ...{
        t,
        span,
        wall: this.#startedUs + t + span + 40,
        lists,
        relists,
        errors: 0,
        max: 4_000 + this.#duration(900),
        hist,
      },
      ...{
        sandboxes: pods,
        containers: pods,
        exitedSandboxes: 2,
        exitedContainers: 3,
        sandboxListBytes: pods * 600,
        containerListBytes: pods * 700,
        expected: due,
        matched: due,
        unobservable: 0,
        covered: span,
        decided: t,
      },
      kubelet: {
        scraped: { from: t, to: t + 45e6 },
        ...{
          relists: 0,
          hist: Array.from({ length: 12 }, () => 0),
          intervals: 0,
          intervalSum: 0,
          lastSeenAge: null,
        },
        ...{ discarded: 0, streamErrors: 0, listP99: 4_950, resident: 120_000_512 + minute * 4_096 },
        calls: {
          ...{ from: t - 15e6, to: t + 45e6, relistSum: 0, longestList: 2_500 },
          sandboxLists: { calls: 1, errors: 0, sum: 1_600 },
          containerLists: { calls: 1, errors: 0, sum: 2_500 },
          sandboxStatuses: { calls: 4, errors: 0, sum: 10_000 + this.#duration(3_000) },
          containerStatuses: { calls: 6, errors: 0, sum: 20_000 + this.#duration(6_000) },
          cpu: 1_700_000 + this.#duration(100_000),
        },
      },
      // A node that is not short of anything.
      pressure: {
        ...{
          span,
          cpuSome: this.#duration(300_000),
          ioSome: this.#duration(90_000),
          ioFull: this.#duration(50_000),
        },
        ...{ memorySome: 0, memoryFull: 0 },
      },
    };
  }

  /** The record of this many minutes, from this one on, in which nothing happens. */
  calmMinutes(from: number, minutes: number): RecordOf<'relist_minute'> {
    const minute = this.minute(from);
    const { calls } = minute.kubelet ?? {};
    const [first, ...others] = Array.from({ length: minute.lists.length / 6 }, (_, i) =>
      minute.lists.slice(6 * i, 6 * i + 6),
    );
    const span = minutes * minute.span;
    return {
      ...minute,
      ...{
        span,
        covered: span,
        relists: minutes * minute.relists,
        hist: minute.hist.map((count) => minutes * count),
      },
      lists: [
        first ?? [],
        ...others.slice(-2).map((list) => list.map((each) => each + span - minute.span)),
      ].flat(),
      ...{ expected: 0, matched: 0 },
      ...(minute.kubelet === undefined || calls === undefined
        ? {}
        : { kubelet: { ...minute.kubelet, calls: { ...calls, to: calls.to + span - minute.span } } }),
    };
  }

  readonly #isDue = (minute: number): boolean => (minute + this.#no) % this.#rates.minutesAPod === 0;

  /** About a log-normal time. */
  readonly #duration = (median: number): number =>
    Math.round(median * Math.exp((this.#random() + this.#random() + this.#random() - 1.5) * 0.5));

  #transitions(
    from: number,
    steps: readonly (readonly [ContainerIdentity, number, number, PlegState?, PlegState?])[],
  ): EvidenceRecord[] {
    const periodUs = this.#rates.relistPeriodMs * 1000;
    return steps.flatMap(([{ id, isSandbox }, eventType, after, oldState, newState]) => {
      const at = from + after + Math.round(this.#random() * 30_000);
      const list = Math.ceil(at / periodUs) * periodUs + Math.round(this.#random() * 2_000);
      const created = BigInt(this.#startedUs + at) * 1000n - BigInt(Math.round(this.#random() * 2e6));
      const event: RecordOf<'container_event'> = {
        type: 'container_event',
        ...{ t: at, containerId: id, eventType, createdNs: `${created}` },
        ...{ isSandbox, replayed: false, hasSandboxStatus: true },
        ...(eventType === STOPPED && !isSandbox ? { exit: { code: 0, reason: 'Completed' } } : {}),
      };
      if (oldState === undefined || newState === undefined) return [event];
      const change: RecordOf<'relist_change'> = {
        type: 'relist_change',
        ...{ t: list, containerId: id, isSandbox, oldState, newState },
        window: { from: list - periodUs, to: list },
      };
      return [event, change];
    });
  }
}

function podOf(name: string): Pod {
  const id = (part: string) => createHash('sha256').update(`${name} ${part}`).digest('hex');
  const sandbox = id('sandbox');
  const suffix = `${sandbox.slice(0, 9)}-${sandbox.slice(9, 14)}`;
  const whose = {
    podUid: randomUUID(),
    namespace: 'shop-frontend',
    pod: `checkout-service-${suffix}`,
    attempt: 0,
  };
  return {
    sandbox: { id: sandbox, sandbox, isSandbox: true, ...whose, container: '' },
    container: { id: id('container'), sandbox, isSandbox: false, ...whose, container: 'checkout' },
  };
}

/** Park and Miller's generator, so that every run stores the same figures. */
function randomFrom(seed: number): () => number {
  let state = (seed * 48_271) % 2_147_483_647;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
