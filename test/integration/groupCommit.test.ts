/*
 * Batches of several nodes in one transaction of a real Postgres: one that fails costs the others nothing, and where somebody holds a lock only
 * its own node waits.
 */
import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { expect, it } from 'vitest';
import { INGEST_INTERVALS } from '../../src/controller/config.ts';
import { JOBS_AT_ONCE } from '../../src/controller/ingest/queueWorker.ts';
import { defaultsOf } from '../../src/platform/settings.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import { queueOf } from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { agentIncarnation } from '../support/batches.ts';
import { createCommitter } from '../support/committed.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { event, events, missedFinding, nodeState, relistMinute, streamSession } from '../support/records.ts';

const QUEUES = 16;
const NODES = Array.from({ length: 20 }, (_, i) => `node-${i}`);
/** Together, the second and the third make one element, and the fourth makes two. */
const ARRAY_SYNTAX = [
  'plain',
  '"x',
  'y"',
  'a,b',
  '{',
  '}',
  '{c,d}',
  '\\',
  'NULL',
  'null',
  ' ',
  ' e ',
  'f\ng',
  "'",
  '\uFFFD',
];

needs('postgres', 'redis-server')('batches that wait', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, acked } = bed;

  const transactions = async () =>
    (await rows<{ n: number }>('SELECT count(DISTINCT last_stored_at)::int AS n FROM store.epoch'))[0]?.n;

  it('are committed in one transaction, with records of every type of each node', async () => {
    const commit = await createCommitter(bed.store);
    const agents = NODES.map((node) => agentIncarnation(node));
    const all = (n: number) => [
      event(n),
      missedFinding(),
      relistMinute(),
      streamSession({ t: n }),
      nodeState({ t: n, mode: `Mode${n}` }),
    ];
    expect(new Set(await commit(agents.map((one) => one.batch(1, all(1)))))).toEqual(new Set(['committed']));
    expect(new Set(await commit(agents.map((one) => one.batch(6, all(2)))))).toEqual(new Set(['committed']));
    expect(await transactions()).toBe(1);
    const stored = await rows(
      `SELECT DISTINCT acked_seq, (SELECT count(*)::int FROM plegwatch.container_events c WHERE c.node = e.node) AS events,
              (SELECT count(*)::int FROM plegwatch.findings f WHERE f.node = e.node) AS findings,
              (SELECT count(*)::int FROM store.relist_minute m JOIN store.node n USING (node_id) WHERE n.name = e.node) AS minutes,
              (SELECT sum(h.span_us)::int FROM store.relist_hour h JOIN store.node n USING (node_id) WHERE n.name = e.node) AS span_us,
              (SELECT count(*)::int FROM plegwatch.stream_sessions s WHERE s.node = e.node) AS sessions,
              (SELECT mode FROM plegwatch.nodes n WHERE n.node = e.node) AS mode,
              (SELECT day_rows FROM store.node n WHERE n.name = e.node) AS day_rows
       FROM plegwatch.epochs e`,
    );
    expect(stored).toEqual([
      {
        ...{ acked_seq: 10, events: 2, findings: 2, minutes: 2, span_us: 120_000_000, sessions: 1 },
        ...{ mode: 'Mode2', day_rows: 12 },
      },
    ]);
  });

  it('are committed in groups that begin some time apart, while few of them wait', async () => {
    let groups = 0;
    const commit = await createCommitter(bed.store, {
      transaction(work) {
        groups += 1;
        return bed.store.transaction(work);
      },
    });
    // Fewer than eight of each queue.
    const agents = NODES.slice(0, 8).map((node) => agentIncarnation(node));
    await commit(agents.map((one) => one.batch(1, events(1, 1))));
    groups = 0;
    const start = performance.now();
    const outcomes: Promise<string[]>[] = [];
    for (const one of agents) {
      outcomes.push(commit([one.batch(2, [event(2)])]));
      await setImmediate();
    }
    expect(new Set((await Promise.all(outcomes)).flat())).toEqual(new Set(['committed']));
    expect(groups).toBeLessThanOrEqual(1 + (performance.now() - start) / 100);
  });

  it('wait longer while all of them are calm, until one comes that is not; those of one node not for each other', async () => {
    let [clock, asked, groups] = [0, 0, 0];
    const commit = await createCommitter(
      bed.store,
      {
        transaction(work) {
          groups += 1;
          clock += 101;
          return bed.store.transaction(work);
        },
      },
      () => {
        asked += 1;
        return clock;
      },
    );
    const [a, b, c] = [agentIncarnation('a'), agentIncarnation('b'), agentIncarnation('c')];
    await commit([a, b, c].map((one) => one.batch(1, [event(1), relistMinute()])));
    groups = 0;
    const groupsFor = async (...batches: Batch[]): Promise<number> => {
      expect(new Set(await commit(batches))).toEqual(new Set(['committed']));
      const made = groups;
      groups = 0;
      return made;
    };
    const waiting: Promise<string[]>[] = [];
    for (const calm of [a.batch(3, [relistMinute()]), b.batch(3, [relistMinute()])]) {
      asked = 0;
      waiting.push(commit([calm]));
      while (asked === 0) await setImmediate();
    }
    expect(await groupsFor(c.batch(3, [relistMinute(), event(4)]))).toBe(1);
    expect((await Promise.all(waiting)).flat()).toEqual(['committed', 'committed']);
    // It says that something was slow.
    const statuses = { asked: 1, slow: 0, slowest: null };
    expect(await groupsFor(a.batch(4, [relistMinute({ statuses })]))).toBe(1);
    clock += 1_000;
    expect(await groupsFor(a.batch(5, [relistMinute()]), a.batch(6, [relistMinute()]))).toBe(2);
  });

  it('are committed at once where their queue hands out no more before, or many wait', async () => {
    const agents = Array.from({ length: 1_000 }, (_, n) => agentIncarnation(`node-${n}`));
    const ofQueue = (queue: number) => agents.filter(({ node }) => queueOf(node, QUEUES) === queue);
    // Time stands still: no group is ever due because of it but the first.
    const commit = await createCommitter(bed.store, bed.store, () => 0);
    const ofOne = ofQueue(0).slice(0, JOBS_AT_ONCE);
    const ofEach = Array.from({ length: QUEUES }, (_, queue) => ofQueue(queue).slice(0, 64 / QUEUES)).flat();
    for (const seq of [1, 3, 5]) {
      for (const some of [ofOne, ofEach]) {
        const outcomes = await commit(some.map((one) => one.batch(seq, [event(seq), relistMinute()])));
        expect(outcomes).toEqual(some.map(() => 'committed'));
      }
    }
  });

  it('are stored once, whichever of their seqs are stored already', async () => {
    const commit = await createCommitter(bed.store);
    const agents = NODES.map((node) => agentIncarnation(node));
    await commit(agents.map((one) => one.batch(1, events(1, 4))));
    await commit(agents.map((one, i) => one.batch(1 + (i % 6), events(1 + (i % 6), 6 + (i % 6)))));
    const ends = NODES.map((node, i) => ({
      node,
      stored: i % 6 === 5 ? 10 : 6 + (i % 6),
      acked: i % 6 === 5 ? 4 : 6 + (i % 6),
    }));
    const stored = await rows(
      `SELECT e.node, (SELECT count(*)::int FROM plegwatch.container_events c WHERE c.node = e.node) AS stored, acked_seq AS acked
       FROM plegwatch.epochs e`,
    );
    const expected = ends.map((end) => ({ ...end, stored: end.acked === 4 ? 10 : end.stored }));
    expect(stored.toSorted((a, b) => NODES.indexOf(`${a['node']}`) - NODES.indexOf(`${b['node']}`))).toEqual(
      expected,
    );
  });

  it('are stored although one of them fails, and one has a row that its epoch does not know of', async () => {
    const commit = await createCommitter(bed.store);
    const agents = NODES.map((node) => agentIncarnation(node));
    await commit(agents.map((one) => one.batch(1, events(1, 1))));
    await rows(
      `CREATE FUNCTION store.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`,
    );
    await rows(
      'CREATE TRIGGER refuse BEFORE INSERT ON store.container_event FOR EACH ROW WHEN (NEW.created_ns = 666) EXECUTE FUNCTION store.refuse()',
    );
    await rows(
      `INSERT INTO store.container_event SELECT received_at, created_ns, container_key, day, node_id, context_id, 2, cluster_id, flags
       FROM store.container_event WHERE node_id = (SELECT node_id FROM store.node WHERE name = 'node-8')`,
    );
    const outcomes = await commit(
      agents.map((one, i) => one.batch(2, [event(2, i === 7 ? { createdNs: '666' } : {})])),
    );
    expect(outcomes).toEqual(NODES.map((_, i) => (i === 7 || i === 8 ? 'failed' : 'committed')));
    const acked = await rows(
      'SELECT node, acked_seq FROM plegwatch.epochs WHERE acked_seq <> 2 ORDER BY node',
    );
    expect(acked).toEqual(['node-7', 'node-8'].map((node) => ({ node, acked_seq: 1 })));
    expect(await rows('SELECT node FROM plegwatch.gaps')).toEqual([]);
  });

  it('go alone in several transactions at a time if their epochs are new, and keep no group waiting', async () => {
    const known = agentIncarnation('known');
    let begun = 0;
    const [two, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const commit = await createCommitter(bed.store, {
      transaction: (work) =>
        bed.store.transaction((runner) =>
          work({
            ...runner,
            async run(statement, values) {
              if (statement.name === 'lock_epoch' && values?.[1] !== known.node) {
                begun += 1;
                if (begun === 2) two.resolve();
                await free.promise;
              }
              return runner.run(statement, values);
            },
          }),
        ),
    });
    expect(await commit([known.batch(1, events(1, 1))])).toEqual(['committed']);
    const newcomers = commit(NODES.map((node) => agentIncarnation(node).batch(1, events(1, 1))));
    await two.promise;
    expect(await commit([known.batch(2, events(2, 2))])).toEqual(['committed']);
    expect(begun).toBe(2);
    free.resolve();
    expect(new Set(await newcomers)).toEqual(new Set(['committed']));
  });

  it('keep every container id as it was sent, whatever it means in an array of Postgres', async () => {
    const commit = await createCommitter(bed.store);
    const agents = NODES.map((node) => agentIncarnation(node));
    await commit(agents.map((one) => one.batch(1, events(1, 1))));
    const records = ARRAY_SYNTAX.map((containerId, i) => event(2 + i, { containerId }));
    expect(new Set(await commit(agents.map((one) => one.batch(2, records))))).toEqual(new Set(['committed']));
    expect(await rows('SELECT node, cause, from_seq FROM plegwatch.gaps')).toEqual([]);
    for (const node of NODES) {
      const stored = await rows(
        'SELECT container_id FROM plegwatch.container_events WHERE node = $1 AND seq > 1 ORDER BY seq',
        [node],
      );
      expect(stored).toEqual(ARRAY_SYNTAX.map((container_id) => ({ container_id })));
    }
  });

  it('are tried again while another controller has locked their node, and put aside with their node if somebody else has', async () => {
    let [clock, tries] = [0, 0];
    const commit = await createCommitter(
      bed.store,
      {
        transaction: (work) =>
          bed.store.transaction((runner) =>
            work({
              ...runner,
              run(statement, values) {
                if (statement.name === 'lock_nodes') {
                  tries += 1;
                  // The next group is due.
                  clock += 101;
                }
                return runner.run(statement, values);
              },
            }),
          ),
      },
      () => clock,
    );
    const agent = agentIncarnation('node');
    await commit([agent.batch(1, events(1, 1))]);
    const triesOf = async (
      application: string,
      lock: string,
      ...batches: readonly Batch[]
    ): Promise<number> => {
      const holder = new Client({ connectionString: bed.databaseUrl, application_name: application });
      await holder.connect();
      try {
        await holder.query('BEGIN');
        await holder.query(lock);
        [clock, tries] = [clock + 60_000, 0];
        expect(await commit(batches)).toEqual(batches.map(() => 'busy'));
        return tries;
      } finally {
        await holder.end();
      }
    };
    const locks = [
      'SELECT FROM store.node FOR UPDATE',
      'SELECT FROM store.epoch FOR UPDATE',
      'UPDATE store.node SET day_rows = 0',
    ];
    const batch = agent.batch(2, [event(2)]);
    for (const lock of locks) {
      // One behind the other: a group has one batch of a node.
      expect(await triesOf('psql', lock, batch, batch)).toBe(2);
      expect(await triesOf('plegwatch controller', lock, batch, batch)).toBe(20);
      expect(await triesOf('plegwatch controller', lock, agent.batch(2, [relistMinute()]))).toBe(10);
    }
    clock += 60_000;
    expect(await commit([agent.batch(2, [event(2)])])).toEqual(['committed']);
  });

  it('are stored while one node of each queue is locked, and so is that node once its lock is released', async () => {
    await bed.start({ intervals: { ...defaultsOf(INGEST_INTERVALS), intervalStoreWait: millis(3_600_000) } });
    const holder = new Client({ connectionString: bed.databaseUrl });
    await holder.connect();
    const nodesOf = (kind: string) =>
      Array.from({ length: QUEUES }, (_, queue) => {
        for (let i = 0; ; i += 1)
          if (queueOf(`${kind}-${i}`, QUEUES) === queue) return agentIncarnation(`${kind}-${i}`);
      });
    const [locked, others] = [nodesOf('locked'), nodesOf('other')];
    const last = locked.at(-1)?.node;
    const allAcked = async (agents: typeof locked, seq: number) => {
      for (const one of agents) await acked(one, seq);
    };
    try {
      for (const one of [...locked, ...others]) await bed.sender.send(one.batch(1, events(1, 1)));
      await allAcked([...locked, ...others], 1);
      // For half of them the node, for the others the epoch, and for one a row that only the writing statement meets.
      await holder.query(
        `BEGIN; SELECT FROM store.node WHERE name LIKE 'locked%' AND node_id % 2 = 0 AND name <> '${last}' FOR UPDATE;
         SELECT FROM store.epoch e JOIN store.node n USING (node_id) WHERE name LIKE 'locked%' AND node_id % 2 = 1 AND name <> '${last}' FOR UPDATE OF e;
         SELECT FROM store.report_queue r JOIN store.node n USING (node_id) WHERE name = '${last}' FOR UPDATE OF r`,
      );
      for (const one of locked) await bed.sender.send(one.batch(2, [nodeState({ t: 2 }), event(3)]));
      for (const one of others) await bed.sender.send(one.batch(2, events(2, 3)));
      await allAcked(others, 3);
      expect((await bed.store.readSettings()).queues).toBe(QUEUES);
      await allAcked(locked, 1);
      await holder.query('COMMIT');
      await allAcked(locked, 3);
    } finally {
      await holder.end();
    }
  });
});
