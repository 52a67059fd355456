/*
 * The election of a leader among candidates on a real API server, and terms in a real Postgres: one leads, another one follows it, and
 * one that was deposed writes nothing.
 */
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type Election, startElection } from '../../src/controller/leader/election.ts';
import { lead } from '../../src/controller/leader/leadership.ts';
import { LEASE_TIMES, type LeaseTimes } from '../../src/controller/leader/lease.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { configMapsOf, leasesOf } from '../../src/kube/object.ts';
import { sleep } from '../../src/platform/sleep.ts';
import { aborted } from '../../src/platform/stopSignal.ts';
import { int4 } from '../../src/store/schema/columns.ts';
import { leader, node } from '../../src/store/schema/tables.ts';
import { command, rowOf, statement } from '../../src/store/statement.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

const log = pino({ level: 'silent' });
const NAMESPACE = 'default';
const LEASES = leasesOf(NAMESPACE);
/** Held for longer than a test lasts, and so released however long that takes. */
const LONG = { durationMs: 3_600_000, renewWithinMs: 3_600_000, retryMs: 500, releaseWithinMs: 240_000 };

let api: LocalApiServer;
let server: TestServer;
let kube: KubeClient;
let store: Store;
let elections: Election[] = [];
let leaders: string[] = [];
let tests = 0;

needs(
  'kube-apiserver',
  'etcd',
  'postgres',
)('leader election', () => {
  beforeAll(async () => {
    [api, server] = await Promise.all([startApiServer(), startServer()]);
    kube = await createKubeClient({ kubeconfig: api.kubeconfig });
  });
  beforeEach(async () => {
    tests += 1;
    leaders = [];
    store = await openStore({ databaseUrl: await server.database(1), log });
  });
  afterEach(async () => {
    for (const election of elections) await election.stop();
    elections = [];
    await store.close();
  });
  afterAll(async () => {
    kube?.close();
    await Promise.all([api?.stop(), server?.stop()]);
  });

  test('one leads, and another one at once when it stops', async () => {
    const first = candidate('first', LONG);
    await waitFor('the first leads', () => leaders.includes('first'));
    candidate('second', LONG);
    candidate('third', LONG);
    await waitFor('it is renewed', async () => (await renewals()) > 2);
    expect(leaders).toEqual(['first']);
    await first.stop();
    await waitFor('another one leads', () => leaders.length === 1);
    expect(leaders).not.toContain('first');
    expect(await holder()).not.toBe('');
  });

  test('another one leads when the leader no longer renews its Lease', async () => {
    const frozen = frozenKube();
    candidate('first', LEASE_TIMES, frozen.kube);
    await waitFor('the first leads', () => leaders.includes('first'));
    frozen.freeze();
    candidate('second', LONG);
    await waitFor('the second leads', () => leaders.includes('second'));
    // It stopped before the other one could start.
    expect(leaders).toEqual(['second']);
  });

  test('a Lease that was deleted is made again, and one leads', async () => {
    candidate('first', LONG);
    candidate('second', LONG);
    await waitFor('one leads', () => leaders.length === 1);
    await kube.delete(LEASES, leaseName());
    await waitFor('it is held again', async () => (await holder()) !== '');
    await waitFor('one leads', () => leaders.length === 1);
  });

  test('the one whose term has ended writes nothing more into the store, and ends', async () => {
    const stopping = new AbortController();
    const terms: Store[] = [];
    let stopped = 0;
    const start = (inTerm: Store) => {
      terms.push(inTerm);
      return async () => {
        stopped += 1;
      };
    };
    const options = { ...leadership(), start };
    const firstEnds = new AbortController();
    const first = lead(options, firstEnds.signal, () => true);
    await waitFor('its term begins', () => terms.length === 1);
    await write(terms[0], 'old');
    const second = lead(options, stopping.signal, () => true);
    await waitFor('the next term begins', () => terms.length === 2);
    await expect(write(terms[0], 'late')).rejects.toThrow('term 1 of this leader has ended');
    await expect(terms[0]?.run(command('SELECT 1'))).rejects.toThrow('term 1');
    await waitFor('the first has ended', () => stopped === 1);
    firstEnds.abort();
    await write(terms[1], 'new');
    expect(await names()).toEqual(['new', 'old']);
    stopping.abort();
    await Promise.all([first, second]);
    expect(stopped).toBe(2);
  });

  test('the next term waits for the transactions of the one before', async () => {
    const stopping = new AbortController();
    const terms: Store[] = [];
    const start = (inTerm: Store) => {
      terms.push(inTerm);
      return async () => undefined;
    };
    const options = { ...leadership(), start };
    const first = lead(options, stopping.signal, () => true);
    await waitFor('its term begins', () => terms.length === 1);
    let second = Promise.resolve();
    await terms[0]?.transaction(async (runner) => {
      // A leader that hangs in a transaction loses it; this one only waits for a slow machine.
      await runner.run(command('SET LOCAL idle_in_transaction_session_timeout = 0'));
      second = lead(options, stopping.signal, () => true);
      await waitFor('the next one waits', async () => (await waitingForLocks()) === 1);
      expect(terms).toHaveLength(1);
      await runner.run(insertNode('under-way'));
    });
    await waitFor('the next term begins', () => terms.length === 2);
    expect(await names()).toEqual(['under-way']);
    stopping.abort();
    await Promise.all([first, second]);
  });

  test('two that lead at the same time find the terms of the other between their own, until one ends', async () => {
    const known = { first: false, second: false };
    const leads = (name: 'first' | 'second') => {
      const ending = new AbortController();
      const options = {
        ...leadership(),
        pauseMs: 300,
        start(inTerm: Store) {
          const ended = new AbortController();
          // The work of a leader runs into the other one's term.
          const works = (async () => {
            while (!ended.signal.aborted) {
              await inTerm.run(command('SELECT 1')).catch(() => undefined);
              await sleep(20, ended.signal);
            }
          })();
          return async () => {
            ended.abort();
            await works;
          };
        },
        onContested: (isContested: boolean) => {
          known[name] = isContested;
        },
      };
      const led = lead(options, ending.signal, () => true);
      return async () => {
        ending.abort();
        await led;
      };
    };
    const first = leads('first');
    await waitFor('its term begins', async () => (await latestTerm())?.term === 1);
    expect(known.first).toBe(false);
    const second = leads('second');
    await waitFor('both know', () => known.first && known.second);
    expect(await latestTerm()).toMatchObject({ is_contested: true });
    await second();
    expect(known.second).toBe(false);
    await waitFor('the first is alone', () => !known.first);
    await first();
    // One that takes the place of another one is no contest.
    const third = leads('first');
    await waitFor('its term begins', async () => (await latestTerm())?.is_contested === false);
    await third();
  });

  test('the one that does not hold the Lease begins no write to the API server', async () => {
    const stopping = new AbortController();
    let holds = true;
    let client: KubeClient | undefined;
    const start = (_: Store, leading: KubeClient) => {
      client = leading;
      return async () => undefined;
    };
    const led = lead({ ...leadership(), start }, stopping.signal, () => holds);
    const leading = await waitFor('it leads', () => client);
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'written' }, data: { by: 'us' } };
    await leading.apply(configMapsOf(NAMESPACE), object);
    holds = false;
    await expect(leading.apply(configMapsOf(NAMESPACE), { ...object, data: { by: 'late' } })).rejects.toThrow(
      'this controller no longer leads',
    );
    await expect(leading.delete(configMapsOf(NAMESPACE), 'written')).rejects.toThrow('no longer leads');
    expect(await kube.get(configMapsOf(NAMESPACE), 'written')).toMatchObject({ data: { by: 'us' } });
    stopping.abort();
    await led;
  });
});

const leaseName = (): string => `lead-${tests}`;

function candidate(
  name: string,
  times: LeaseTimes,
  client: Pick<KubeClient, 'get' | 'apply'> = kube,
): Election {
  const election = startElection({
    kube: client,
    lease: { namespace: NAMESPACE, name: leaseName() },
    log,
    times,
    isFit: () => true,
    async lead(signal) {
      leaders.push(name);
      await aborted(signal);
      leaders = leaders.filter((leader) => leader !== name);
    },
  });
  elections.push(election);
  return election;
}

/** A client whose requests never end once it is frozen. */
function frozenKube() {
  let isFrozen = false;
  const never = <T>(signal?: AbortSignal) =>
    new Promise<T>((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
  const client: Pick<KubeClient, 'get' | 'apply'> = {
    get: (resource, name, signal) => (isFrozen ? never(signal) : kube.get(resource, name, signal)),
    apply: (resource, object, signal) => (isFrozen ? never(signal) : kube.apply(resource, object, signal)),
  };
  return {
    kube: client,
    freeze: () => {
      isFrozen = true;
    },
  };
}

const versions = new Set<string>();

async function renewals(): Promise<number> {
  const lease = await kube.get(LEASES, leaseName());
  versions.add(`${leaseName()} ${lease?.metadata.resourceVersion}`);
  return [...versions].filter((version) => version.startsWith(`${leaseName()} `)).length;
}

async function holder(): Promise<string> {
  const lease = await kube.get(LEASES, leaseName());
  return String(Reflect.get(Object(lease?.['spec']), 'holderIdentity') ?? '');
}

const leadership = () => ({ store, kube, cluster: 'prod', log, onContested: () => undefined });

const insertNode = (name: string) =>
  command(
    `INSERT INTO store.node (cluster_id, name) SELECT cluster_id, '${name}' FROM store.cluster WHERE name = 'prod'`,
  );

async function write(inTerm: Store | undefined, name: string): Promise<void> {
  await inTerm?.transaction((runner) => runner.run(insertNode(name)));
}

async function names(): Promise<string[]> {
  const rows = await store.query((db) => db.select({ name: node.name }).from(node).orderBy(node.name));
  return rows.map(({ name }) => name);
}

const LOCKS = statement(
  "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  rowOf({ n: int4 }),
);

const latestTerm = async () => (await store.query((db) => db.select().from(leader)))[0];

const waitingForLocks = async (): Promise<number | undefined> => (await store.run(LOCKS)).rows[0]?.n;
