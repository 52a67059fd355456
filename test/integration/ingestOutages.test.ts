/*
 * Ingest by two controllers at once, and while Postgres, Redis or a controller is away: every record is stored once all the same.
 */
import { Client } from 'pg';
import * as v from 'valibot';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startIngest } from '../../src/controller/ingest/ingest.ts';
import { startElection } from '../../src/controller/leader/election.ts';
import { ControllerMetrics } from '../../src/controller/metrics.ts';
import { type KubeObject, KubeObjectSchema } from '../../src/kube/object.ts';
import { aborted } from '../../src/platform/stopSignal.ts';
import { inboxKey, queueOf } from '../../src/protocol/redisKeys.ts';
import { command } from '../../src/store/statement.ts';
import { MAX_CONNECTIONS, openStore } from '../../src/store/store.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { silent } from '../support/database.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { buildIngestProgram, type IngestProgram } from '../support/ingestProcess.ts';
import { needs } from '../support/needs.ts';
import { event, events } from '../support/records.ts';
import { passes, until, waitFor } from '../support/waitFor.ts';

const QUEUES = 2;

needs('postgres', 'redis-server')('ingest', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, drained, acked, storedSeqs } = bed;

  /** A controller's ingest that can be killed. */
  let program: IngestProgram;

  beforeAll(async () => {
    program = await buildIngestProgram();
  });
  beforeEach(() => bed.start());
  afterAll(() => program?.remove());

  /** Starts another controller on the same store and queues; returns what stops it. */
  async function startSecond(): Promise<() => Promise<void>> {
    const other = await openStore({ databaseUrl: bed.databaseUrl, log: silent });
    const settings = { store: other, redisUrl: bed.redis.urlOf('controller'), cluster: CLUSTER, log: silent };
    const second = await startIngest({ ...settings, metrics: new ControllerMetrics() });
    return async () => {
      await second.stop();
      await other.close();
    };
  }

  /** Inputs of the node `node-a`. */
  const waiting = () => bed.sender.redis.hlen(inboxKey(CLUSTER, queueOf('node-a', QUEUES)));

  const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

  it('stores two batches at once whose versions are new to both controllers', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(1, [event(1), event(2)]));
    await acked(one, 2);
    const holder = new Client({ connectionString: bed.databaseUrl });
    await holder.connect();
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT FROM store.epoch WHERE epoch = $1 FOR UPDATE', [one.epoch]);
      const newer = { context: { ...one.batch(1, []).context, no: 2, kubelet: 'v1.37.0' } };
      const both = [
        commitAll(bed.databaseUrl, [one.batch(3, [event(3), event(4)], newer)]),
        commitAll(bed.databaseUrl, [one.batch(5, [event(5), event(6)], newer)]),
      ];
      await bed.lockWaits(2);
      await holder.query('COMMIT');
      await Promise.all(both);
      expect(await storedSeqs(one)).toEqual(upTo(6));
    } finally {
      await holder.end();
    }
  });

  it('acknowledges nothing while Postgres is down, and continues when it is back', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(1, events(1, 10)));
    await acked(one, 10);
    await bed.server.part.kill();
    await bed.sender.send(one.batch(11, events(11, 20)));
    await bed.sender.send(one.batch(21, events(21, 30)));
    await passes(async () => {
      expect(bed.ingest.health().database).toBe(false);
    });
    expect(await bed.sender.reply(one)).toEqual({ ackGeneration: 1, ackedSeq: 10 });
    await passes(async () => expect(await waiting()).toBe(2));
    await bed.server.part.restart();
    await acked(one, 30);
    await drained();
    expect(await storedSeqs(one)).toEqual(upTo(30));
    expect(bed.ingest.health().alive).toBe(true);
  });

  it('says that Postgres answers, and so renews the Lease, while transactions hold every connection of the pool', async () => {
    let [taken, isFree] = [0, false];
    const transactions = Array.from({ length: MAX_CONNECTIONS }, () =>
      bed.store.transaction(async (runner) => {
        taken += 1;
        while (!isFree) await runner.run(command('SELECT pg_sleep(0.1)'));
      }),
    );
    let [lease, renewals]: [KubeObject | undefined, number] = [undefined, 0];
    const election = startElection({
      kube: {
        get: () => Promise.resolve(lease),
        apply(_resource, object) {
          renewals += 1;
          const metadata = { ...object.metadata, uid: 'lease', resourceVersion: `${renewals}` };
          lease = v.parse(KubeObjectSchema, { ...object, metadata });
          return Promise.resolve(lease);
        },
      },
      lease: { namespace: 'default', name: 'plegwatch' },
      log: silent,
      isFit: () => bed.ingest.health().database,
      lead: (signal) => aborted(signal),
    });
    const pingAfter = (start: string) =>
      waitFor('Postgres is asked', async () => {
        const [asked] = await rows<{ at: string }>(
          `SELECT query_start::text AS at FROM pg_stat_activity
           WHERE datname = current_database() AND application_name = 'plegwatch controller (ping)' AND query_start > $1::timestamptz`,
          [start],
        );
        return asked?.at;
      });
    try {
      await until(() => taken === MAX_CONNECTIONS);
      const [now] = await rows<{ at: string }>('SELECT clock_timestamp()::text AS at');
      // The answer to the first question is known when the second is asked.
      await pingAfter(await pingAfter(now?.at ?? ''));
      const before = renewals;
      expect(bed.ingest.health().database).toBe(true);
      await until(() => renewals > before + 1);
    } finally {
      isFree = true;
      await election.stop();
      await Promise.all(transactions);
    }
  });

  it('continues after Redis came back empty', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(1, events(1, 10)));
    await acked(one, 10);
    await bed.redis.kill();
    await bed.redis.restart();
    await bed.sender.send(one.batch(1, events(1, 10)), 'again');
    await bed.sender.send(one.batch(11, events(11, 20)));
    await acked(one, 20);
    expect(await storedSeqs(one)).toEqual(upTo(20));
  });

  it('stores a batch once and acknowledges it when the controller that has its job is killed before the commit and another one runs', async () => {
    await bed.stop();
    const holder = new Client({ connectionString: bed.databaseUrl });
    await holder.connect();
    const one = agentIncarnation('node-a');
    try {
      // The lock holds ingest inside its transaction.
      await holder.query('BEGIN; LOCK TABLE store.container_event IN SHARE ROW EXCLUSIVE MODE');
      const doomed = await program.start(bed.databaseUrl, bed.redis.urlOf('controller'));
      await bed.sender.send(one.batch(1, events(1, 10)));
      await bed.lockWaits(1);
      await bed.start();
      await doomed.kill();
      expect(await waiting()).toBe(1);
      expect(await storedSeqs(one)).toEqual([]);
      await holder.query('COMMIT');
      await acked(one, 10);
      await drained();
      expect(await storedSeqs(one)).toEqual(upTo(10));
    } finally {
      await holder.end();
    }
  });

  it('stores a batch once and acknowledges it when a controller is killed after the commit, before it replies and removes the input', async () => {
    await bed.stop();
    const holder = new Client({ connectionString: bed.databaseUrl });
    await holder.connect();
    const one = agentIncarnation('node-a');
    try {
      // The lock holds ingest inside its transaction; it commits while Redis accepts no writes, so the reply cannot be sent.
      await holder.query('BEGIN; LOCK TABLE store.container_event IN SHARE ROW EXCLUSIVE MODE');
      const doomed = await program.start(bed.databaseUrl, bed.redis.urlOf('controller'));
      await bed.sender.send(one.batch(1, events(1, 10)));
      await passes(async () => {
        expect(await rows('SELECT FROM pg_locks WHERE NOT granted')).not.toEqual([]);
      });
      await bed.sender.redis.call('CLIENT', 'PAUSE', '600000', 'WRITE');
      await holder.query('COMMIT');
      await passes(async () => {
        expect(await storedSeqs(one)).toEqual(upTo(10));
      });
      await doomed.kill();
      await bed.sender.redis.call('CLIENT', 'UNPAUSE');
      expect(await bed.sender.reply(one)).toBeNull();
      expect(await waiting()).toBe(1);
      await bed.start();
      await passes(async () => {
        expect(await bed.sender.reply(one)).toEqual({ ackGeneration: 1, ackedSeq: 10 });
      });
      await drained();
      expect(await storedSeqs(one)).toEqual(upTo(10));
    } finally {
      await holder.end();
    }
  });

  it('stores each record once while two controllers share the queues', async () => {
    const stopSecond = await startSecond();
    const incarnations = ['node-a', 'node-b', 'node-c'].map((node) => agentIncarnation(node));
    let copy = 0;
    for (const shift of [0, 3, 6, 0, 9]) {
      for (const one of incarnations) {
        for (let first = 91 - shift; first >= 1; first -= 10) {
          await bed.sender.send(one.batch(first, events(first, first + 9)), `copy-${++copy}`);
        }
      }
    }
    for (const one of incarnations) await bed.sender.send(one.batch(1, events(1, 100)));
    for (const one of incarnations) await acked(one, 100);
    await drained();
    for (const one of incarnations) expect(await storedSeqs(one)).toEqual(upTo(100));
    await stopSecond();
  });
});
