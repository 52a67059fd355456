/*
 * When a cluster requires signatures: `auto` stores it once all nodes have enrolled, and every controller of the cluster follows what is stored.
 * On a real Redis and Postgres.
 */
import type { KeyObject } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { Attribution, type AttributionMode } from '../../src/controller/keys/attribution.ts';
import { newControllerKeys } from '../../src/controller/keys/controllerKeys.ts';
import { NodeKeys } from '../../src/controller/keys/nodeKeys.ts';
import {
  type SignatureRequirementOptions,
  startSignatureRequirement,
} from '../../src/controller/keys/signatureRequirement.ts';
import type { SignatureState } from '../../src/controller/keys/statements.ts';
import { lead } from '../../src/controller/leader/leadership.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { batchId, encodeBatch } from '../../src/protocol/batch.ts';
import { queueOf } from '../../src/protocol/redisKeys.ts';
import { newSigningKey, publicKeyText } from '../../src/protocol/signature.ts';
import { mono } from '../../src/protocol/units.ts';
import type { Store } from '../../src/store/store.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { silent } from '../support/database.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { waitFor } from '../support/waitFor.ts';

const QUEUES = 1;
const MINUTE = 60_000_000;

const bed = new IngestBed(QUEUES);
const { rows, acked } = bed;

/** The programs that run in a test, and end with it. */
let running: { stop(): Promise<void> }[] = [];

needs('redis-server', 'postgres')('signatures', () => {
  afterEach(async () => {
    for (const each of running) await each.stop();
    running = [];
  });

  test('are required once every node with an agent has had a key for an hour, and an unsigned batch is refused then', async () => {
    await start('auto');
    const key = await enrolled('node-a');
    await enrolled('node-b');
    const agent = agentIncarnation('node-a');
    await signed(agent.batch(1, events(1, 2)), key);
    await acked(agent, 2);
    await bothSeen();
    const leader = leading('auto');
    await leader.looks();
    await leader.passes(59);
    expect(await requiredSince()).toBeNull();
    await leader.passes(1);
    expect(await requiredSince()).not.toBeNull();
    // A controller that has looked at the keys since: here, one that starts.
    await start('auto');
    await bed.sender.send(agentIncarnation('node-new').batch(1, events(1, 1)));
    expect(await rejected()).toEqual([{ reason: 'not_signed', claimed_node: 'node-new' }]);
    expect(await rows("SELECT FROM store.node WHERE name = 'node-new'")).toEqual([]);
    await signed(agent.batch(3, events(3, 4)), key);
    await acked(agent, 4);
  });

  test('signatures of a new node are awaited: a batch from before it enrolled is refused, and stored when it is sent again', async () => {
    await start('auto');
    await rows('UPDATE store.cluster SET signatures_required_since = now()');
    await start('auto');
    const agent = agentIncarnation('node-new');
    const key = newSigningKey();
    await signed(agent.batch(1, events(1, 2)), key);
    expect(await rejected()).toEqual([{ reason: 'no_valid_key', claimed_node: 'node-new' }]);
    expect(await bed.sender.reply(agent)).toBeNull();
    await enrolled('node-new', key);
    await signed(agent.batch(1, events(1, 2)), key, 'again');
    await acked(agent, 2);
  });

  test('are not required while one node that had an agent today has no key, which is named', async () => {
    await start('auto');
    for (const node of ['node-a', 'node-b', 'node-deleted']) await enrolled(node);
    await bothSeen();
    await rows(
      `INSERT INTO store.report (node_id, cluster_id, node_deleted_at)
       SELECT node_id, cluster_id, now() FROM store.node WHERE name = 'node-deleted'`,
    );
    await rows(
      "DELETE FROM store.node_key WHERE node_id IN (SELECT node_id FROM store.node WHERE name <> 'node-a')",
    );
    const leader = leading('auto');
    await leader.looks();
    await leader.passes(600);
    expect(leader.state).toMatchObject({
      required_since: null,
      agents: 2,
      holding_back: 1,
      names: ['node-b'],
    });
    // Without an agent today it no longer counts, like the Node that was deleted, and the hour begins.
    await rows("UPDATE store.node SET last_seen = last_seen - interval '25 hours' WHERE name = 'node-b'");
    await leader.looks();
    await leader.passes(59);
    expect(await requiredSince()).toBeNull();
    await leader.passes(1);
    expect(await requiredSince()).not.toBeNull();
  });

  test('are not required before an hour has passed since the last unsigned batch', async () => {
    await start('auto');
    const agent = agentIncarnation('node-a');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    await acked(agent, 2);
    await enrolled('node-a');
    const leader = leading('auto');
    await leader.looks();
    await leader.passes(120);
    expect(leader.state).toMatchObject({
      required_since: null,
      without_key: 0,
      holding_back: 1,
      names: ['node-a'],
    });
    await rows("UPDATE store.node SET last_unsigned_at = last_unsigned_at - interval '1 hour'");
    await leader.passes(1);
    expect(await requiredSince()).not.toBeNull();
  });

  test('are not required of a cluster without agents', async () => {
    await start('auto');
    const leader = leading('auto');
    await leader.looks();
    await leader.passes(120);
    expect(await requiredSince()).toBeNull();
  });

  test('stay required when a key expires and a leader follows, until an operator sets accept', async () => {
    await start('auto');
    await rows('UPDATE store.cluster SET signatures_required_since = now()');
    const agent = agentIncarnation('node-a');
    await enrolled('node-a');
    await bothSeen();
    await rows('DELETE FROM store.node_key');
    const leader = leading('auto');
    await leader.looks();
    await leader.passes(1);
    expect(leader.state).toMatchObject({ holding_back: 1 });
    expect(await requiredSince()).not.toBeNull();
    await leader.stop();
    await leading('accept').looks();
    expect(await requiredSince()).toBeNull();
    await start('auto');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    await acked(agent, 2);
  });

  test('are required at once, and stay so, where an operator sets require', async () => {
    await start('auto');
    const requiring = leading('require');
    await requiring.looks();
    await requiring.stop();
    const since = await requiredSince();
    expect(since).not.toBeNull();
    await leading('auto').looks();
    expect(await requiredSince()).toBe(since);
  });

  test('cannot be required by a leader whose term has ended', async () => {
    await start('auto');
    await enrolled('node-a');
    await bothSeen();
    const terms: Store[] = [];
    const stopping = new AbortController();
    const options = {
      ...{ store: bed.store, kube: NO_KUBE, cluster: CLUSTER, log: silent, pauseMs: 3_600_000 },
      onContested: () => undefined,
      start(inTerm: Store) {
        terms.push(inTerm);
        return async () => undefined;
      },
    };
    const led = [lead(options, stopping.signal, () => true)];
    running.push({
      async stop() {
        stopping.abort();
        await Promise.all(led);
      },
    });
    await waitFor('its term begins', () => terms.length === 1);
    const [first] = terms;
    const leader = leading('auto', first);
    await leader.looks();
    led.push(lead(options, stopping.signal, () => true));
    await waitFor('the next term begins', () => terms.length === 2);
    await leader.fails(120);
    expect(await requiredSince()).toBeNull();
    const next = leading('auto', terms[1]);
    await next.looks();
    await next.passes(60);
    expect(await requiredSince()).not.toBeNull();
  });

  test('are required by every controller of a cluster, as soon as it reads the keys again, and by none of another cluster', async () => {
    await start('auto');
    let now = mono(0);
    const clusterId = await bed.store.ensureCluster(CLUSTER);
    const otherId = await bed.store.ensureCluster('other');
    const controllers = [clusterId, clusterId, otherId].map(
      (id) => new Attribution(CLUSTER, 'auto', new NodeKeys(bed.store, id, () => now)),
    );
    const accept = () => Promise.all(controllers.map((each) => each.mayBeUnsigned('node-a')));
    expect(await accept()).toEqual([true, true, true]);
    const requiring = leading('require');
    await requiring.looks();
    await requiring.stop();
    now = mono(30 * 1_000_000 + 1);
    expect(await accept()).toEqual([false, false, true]);
    await leading('accept').looks();
    now = mono(60 * 1_000_000 + 2);
    expect(await accept()).toEqual([true, true, true]);
  });

  test('are not required by a controller with which nobody can enrol, whatever is stored', async () => {
    await bed.start({ attribution: { mode: 'auto' } });
    await rows('UPDATE store.cluster SET signatures_required_since = now()');
    await bed.start({ attribution: { mode: 'auto' } });
    const agent = agentIncarnation('node-a');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    await acked(agent, 2);
  });
});

/** Terms are of the store alone. */
const NO_KUBE = {} as KubeClient;

/** A controller with which agents could enrol, if they had tokens. */
async function start(mode: AttributionMode): Promise<void> {
  const keys = newControllerKeys();
  const kube = {
    reviewToken: () => Promise.reject(new Error('nobody enrols here')),
    get: async () => undefined,
  };
  const account = { namespace: 'plegwatch', name: 'agent' };
  await bed.start({ attribution: { mode, enrolment: { kube, account, loadKeys: async () => keys } } });
}

/** A leader in this mode, whose clock the test moves. */
function leading(mode: AttributionMode, store: SignatureRequirementOptions['store'] = bed.store) {
  let now = 0;
  let looks = 0;
  let failures = 0;
  let state: SignatureState | null = null;
  const started = startSignatureRequirement({
    ...{ store, cluster: CLUSTER, mode, log: silent, intervalMs: 1 },
    clock: () => mono(now),
    onRead(read) {
      state = read;
      if (read === null) failures += 1;
      else looks += 1;
    },
  });
  running.push(started);
  /** Until it has looked with the clock as it is now. */
  const looked = async (): Promise<void> => {
    const before = looks;
    await waitFor('the leader looks', () => looks >= before + 2);
  };
  return {
    looks: looked,
    stop: () => started.stop(),
    passes(minutes: number): Promise<void> {
      now += minutes * MINUTE;
      return looked();
    },
    async fails(minutes: number): Promise<void> {
      now += minutes * MINUTE;
      await waitFor('the leader fails', () => failures > 0);
    },
    get state(): SignatureState | null {
      return state;
    },
  };
}

/** Stores a valid key of a node. */
async function enrolled(node: string, key: KeyObject = newSigningKey()): Promise<KeyObject> {
  const clusterId = await bed.store.ensureCluster(CLUSTER);
  await rows('INSERT INTO store.node (cluster_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    clusterId,
    node,
  ]);
  await rows(
    `INSERT INTO store.node_key (node_id, cluster_id, public_key, enrolled_at, expires_at, pod_uid)
     SELECT node_id, cluster_id, $2, now(), now() + interval '6 hours', 'uid' FROM store.node WHERE name = $1`,
    [node, Buffer.from(publicKeyText(key), 'base64url')],
  );
  return key;
}

/** Every node has had an agent. */
const bothSeen = () => rows('UPDATE store.node SET last_seen = now()');

const signed = async (
  batch: Parameters<typeof encodeBatch>[0],
  key: KeyObject,
  id = batchId(batch),
): Promise<void> => bed.sender.sendData(queueOf(batch.node, QUEUES), await encodeBatch(batch, key), id);

async function requiredSince(): Promise<string | null> {
  const [row] = await rows<{ since: string | null }>(
    'SELECT signatures_required_since::text AS since FROM store.cluster WHERE name = $1',
    [CLUSTER],
  );
  return row?.since ?? null;
}

const rejected = () =>
  waitFor('an input is rejected', async () => {
    const found = await rows<{ reason: string; claimed_node: string }>(
      'SELECT reason, claimed_node FROM store.rejected ORDER BY reason, claimed_node',
    );
    return found.length > 0 && found;
  });
