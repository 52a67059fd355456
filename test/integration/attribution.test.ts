/*
 * Which evidence is stored as a node's: what a pod enrolled a key for, with a token that the API server itself gave it, and signed with it.
 * On a real API server, Redis and Postgres.
 */
import { createPublicKey, type KeyObject, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { run } from '../../devtools/localServices/process.ts';
import { where } from '../../devtools/localServices/where.ts';
import { ControllerKeyFile } from '../../src/agent/ship/controllerKeyFile.ts';
import { NodeEnrolment } from '../../src/agent/ship/nodeEnrolment.ts';
import { openNodeKey } from '../../src/agent/ship/nodeKey.ts';
import { Shipper } from '../../src/agent/ship/shipper.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import type { AttributionMode } from '../../src/controller/keys/attribution.ts';
import {
  type ControllerKeys,
  loadControllerKeys,
  PUBLIC_KEYS_FILE,
  publicKeysOf,
} from '../../src/controller/keys/controllerKeys.ts';
import { conditionsOf } from '../../src/controller/reports/conditions.ts';
import { readEvidence } from '../../src/controller/reports/evidence.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { configMapsOf } from '../../src/kube/object.ts';
import { monoNow } from '../../src/platform/clock.ts';
import { batchId, encodeBatch } from '../../src/protocol/batch.ts';
import { ENROLMENT_FIELD, enrolmentDigest, sealEnrolment } from '../../src/protocol/enrolment.ts';
import { ackReplyKey, queueOf } from '../../src/protocol/redisKeys.ts';
import {
  batchStatement,
  isSignedBy,
  newSigningKey,
  nodeKeyStatement,
  publicKeyOf,
  publicKeyText,
  signatureOf,
} from '../../src/protocol/signature.ts';
import { millis, shift } from '../../src/protocol/units.ts';
import { createReader } from '../../src/ui/answers/reader.ts';
import { timelineAnswer } from '../../src/ui/answers/timeline.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { silent } from '../support/database.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { SpoolBed, write } from '../support/spoolBed.ts';
import { WITHIN_MS, waitFor } from '../support/waitFor.ts';

const NAMESPACE = 'plegwatch';
const ACCOUNT = { namespace: NAMESPACE, name: 'agent' };
const AUDIENCE = `plegwatch/${CLUSTER}`;
const QUEUES = 2;
/** Batches wait for as long as a busy machine takes to confirm a key. */
const PATIENT = millis(240_000);

let api: LocalApiServer;
let kube: KubeClient;
let keys: ControllerKeys;

const bed = new IngestBed(QUEUES);
const { rows, acked } = bed;

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'redis-server',
  'postgres',
)('the evidence of a node', () => {
  const spools = new SpoolBed(() => ({ cluster: CLUSTER, node: 'node-a' }));

  beforeAll(async () => {
    api = await startApiServer();
    kube = await createKubeClient({ kubeconfig: api.kubeconfig });
    await kubectl('create', 'namespace', NAMESPACE);
    for (const name of ['agent', 'other']) await kubectl('create', 'serviceaccount', name, '-n', NAMESPACE);
    await pod('agent-a', 'node-a');
    await pod('agent-b', 'node-b');
    await pod('other-a', 'node-a', 'other');
    await kubectl('create', 'secret', 'generic', 'keys', '-n', NAMESPACE);
    await kubectl('create', 'configmap', 'keys', '-n', NAMESPACE);
    keys = await loadKeys();
  });
  beforeEach(() => start('accept'));
  afterAll(async () => {
    kube?.close();
    await api?.stop();
  });

  test('is shipped signed by an agent that has enrolled, whose token nobody sees who reads Redis', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-identity-'));
    const tokenFile = join(dir, 'token');
    const keysFile = join(dir, 'keys.json');
    const token = await tokenOf('agent-a');
    writeFileSync(tokenFile, token);
    const spool = await spools.open();
    await write(spool, 1, 5);
    const key = await openNodeKey({ dir, cluster: CLUSTER, node: 'node-a', machine: 'm', log: silent });
    const controllerKeys = new ControllerKeyFile(keysFile, silent);
    const enrolment = new NodeEnrolment({
      ...{ cluster: CLUSTER, node: 'node-a', key, tokenFile, controllerKeys },
      hold: PATIENT,
    });
    // Not by ioredis: it takes a line that comes with the answer to MONITOR for an answer to nothing.
    const { hostname, port } = new URL(bed.redis.url);
    const monitor = connect(Number(port), hostname, () => monitor.write('MONITOR\r\n')).setEncoding('utf8');
    let seen = '';
    monitor.on('data', (text: string) => {
      seen += text;
    });
    await waitFor('Redis says what it is sent', () => seen.startsWith('+OK'));
    const shipper = ship(spool, enrolment, controllerKeys);
    try {
      // The keys come after the agent has started: it waits for them.
      await waitFor('the agent misses the keys', () => shipper.enrolmentError?.includes('not there yet'));
      writeFileSync(keysFile, await publishedKeys());
      await waitFor('everything is acknowledged', () => shipper.unacknowledged === 0);
      expect(shipper.enrolmentError).toBeNull();
      expect(shipper.ackError).toBeNull();
      expect(await attributed()).toEqual([{ node: 'node-a', attributed: true, records: 5 }]);
      expect(await rows('SELECT head_from, head_seq FROM store.epoch')).toEqual([
        { head_from: 1, head_seq: 5 },
      ]);
      expect(await signers()).toEqual([{ node: 'node-a', key: publicKeyText(key), isSigned: true }]);
      expect(seen).toContain('enrol.');
      expect(seen).not.toContain(token.split('.')[2] ?? token);
      // The next agent of this node has the same key, and one of another node or machine has not.
      const again = await openNodeKey({ dir, cluster: CLUSTER, node: 'node-a', machine: 'm', log: silent });
      expect(publicKeyText(again)).toBe(publicKeyText(key));
      const cloned = await openNodeKey({ dir, cluster: CLUSTER, node: 'node-a', machine: 'n', log: silent });
      expect(publicKeyText(cloned)).not.toBe(publicKeyText(key));
    } finally {
      monitor.destroy();
      await shipper.stop(0);
      rmSync(dir, { recursive: true });
    }
  });

  test.each([
    ['accept', [{ node: 'node-a', attributed: false, records: 5 }], []],
    ['require', [], ['no_valid_key']],
    ['auto', [], ['no_valid_key']],
  ] as const)(
    'evidence of an agent that never gets the keys of the controller is stored unattributed, or refused where signatures are required, and kept: %s',
    async (mode, stored, reasons) => {
      await rows('UPDATE store.cluster SET signatures_required_since = now()');
      await start(mode);
      const dir = mkdtempSync(join(tmpdir(), 'plegwatch-identity-'));
      const [tokenFile, keysFile] = [join(dir, 'token'), join(dir, 'keys.json')];
      writeFileSync(tokenFile, await tokenOf('agent-a'));
      const spool = await spools.open();
      await write(spool, 1, 5);
      const controllerKeys = new ControllerKeyFile(keysFile, silent);
      const key = newSigningKey();
      const enrolment = new NodeEnrolment({
        cluster: CLUSTER,
        node: 'node-a',
        key,
        tokenFile,
        controllerKeys,
      });
      // It has waited for a while.
      await enrolment.next(shift(monoNow(), millis(-200_000)));
      const shipper = ship(spool, enrolment, controllerKeys);
      try {
        await waitFor('all is stored or refused', async () => {
          const refused = await rows<{ reason: string }>('SELECT DISTINCT reason FROM store.rejected');
          const isStored = isDeepStrictEqual(await attributed(), stored);
          return (
            isStored &&
            isDeepStrictEqual(
              refused.map(({ reason }) => reason),
              reasons,
            )
          );
        });
        expect(shipper.enrolmentError).toContain("the controller's keys are not there yet");
        expect(shipper.keyValidSeconds).toBe(0);
        expect(shipper.unacknowledged).toBe(5);
        expect(shipper.refusedAcks).toBe(0);
        writeFileSync(keysFile, await publishedKeys());
        await waitFor('everything is acknowledged', () => shipper.unacknowledged === 0);
        await waitFor('the key is enrolled', () => shipper.enrolmentError === null);
        expect(await attributed()).toEqual([{ node: 'node-a', attributed: mode !== 'accept', records: 5 }]);
      } finally {
        await shipper.stop(0);
        rmSync(dir, { recursive: true });
      }
    },
  );

  test('evidence of an agent whose key has expired waits until it has enrolled again, and is stored attributed', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-identity-'));
    const [tokenFile, keysFile] = [join(dir, 'token'), join(dir, 'keys.json')];
    writeFileSync(tokenFile, await tokenOf('agent-a'));
    writeFileSync(keysFile, await publishedKeys());
    const spool = await spools.open();
    await write(spool, 1, 5);
    const key = newSigningKey();
    const begin = () => {
      const controllerKeys = new ControllerKeyFile(keysFile, silent);
      const enrolment = new NodeEnrolment({
        cluster: CLUSTER,
        node: 'node-a',
        key,
        tokenFile,
        controllerKeys,
        hold: PATIENT,
      });
      return ship(spool, enrolment, controllerKeys);
    };
    let shipper = begin();
    try {
      await waitFor('everything is acknowledged', () => shipper.unacknowledged === 0);
      expect(shipper.keyValidSeconds).toBeGreaterThan(0);
      await rows("UPDATE store.node_key SET expires_at = now() - interval '1 second'");
      await start('accept');
      await write(spool, 6, 9);
      expect(await rejected()).toEqual([{ reason: 'attributed_epoch', claimed_node: 'node-a' }]);
      expect(shipper.unacknowledged).toBe(4);
      // A process asks for a confirmation when it starts; one that runs, when it is not answered for a while.
      await shipper.stop(0);
      shipper = begin();
      await waitFor('everything is acknowledged', () => shipper.unacknowledged === 0);
      expect(await attributed()).toEqual([{ node: 'node-a', attributed: true, records: 9 }]);
      expect(await saysOfItsAgent('node-a')).toEqual(['The agent reports.', false]);
    } finally {
      await shipper.stop(0);
      rmSync(dir, { recursive: true });
    }
  });

  test('is accepted unsigned and marked while the node has no key, and refused unsigned once it has one', async () => {
    const agent = agentIncarnation('node-a');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    await acked(agent, 2);
    expect(await attributed()).toEqual([{ node: 'node-a', attributed: false, records: 2 }]);
    expect(await saysOfItsAgent('node-a')).toEqual([expect.stringContaining('without signatures'), true]);
    await enrol('node-a', 'agent-a');
    await bed.sender.send(agent.batch(3, events(3, 4)));
    expect(await rejected()).toEqual([{ reason: 'not_signed', claimed_node: 'node-a' }]);
    expect(await bed.sender.reply(agent)).toMatchObject({ ackedSeq: 2 });
  });

  test('that was signed cannot be continued or closed unsigned once the key has expired, and goes on when the node enrols again', async () => {
    const key = await enrol('node-a', 'agent-a');
    const [earlier, agent] = [agentIncarnation('node-a', 1, 120_000), agentIncarnation('node-a', 2)];
    await signed(earlier.batch(1, events(1, 2), { last: 2 }), key);
    await acked(earlier, 2);
    const held = [
      { epoch: earlier.epoch, incarnation: 1, last: 9 },
      { epoch: agent.epoch, incarnation: 2, last: 2 },
    ];
    await signed(agent.batch(1, events(1, 2), { held }), key);
    await acked(agent, 2);
    const ends = [
      "UPDATE store.node_key SET expires_at = now() - interval '1 second'",
      'DELETE FROM store.node_key',
    ];
    for (const [i, end] of ends.entries()) {
      await rows(end);
      await start('accept');
      // A forger: unsigned, and with a key of its own.
      await bed.sender.send(agent.batch(3, events(3, 4), { lost: [{ from: 5, to: 9, cause: 'forged' }] }));
      await signed(agent.batch(3, events(3, 3)), newSigningKey());
      const refused = { reason: 'attributed_epoch', claimed_node: 'node-a' };
      expect(await rejected(2 * (i + 1))).toEqual(Array(2 * (i + 1)).fill(refused));
    }
    await refusals('attributed_epoch', 2);
    // An epoch of its own is stored, marked, and closes none that was signed.
    const forged = agentIncarnation('node-a', 3);
    await bed.sender.send(forged.batch(1, events(1, 1)));
    await acked(forged, 1);
    const epochs = () =>
      rows('SELECT attributed, last_seq, records_lost, end_cause FROM plegwatch.epochs ORDER BY incarnation');
    const [first, second] = [
      { attributed: true, last_seq: 9, records_lost: 0, end_cause: 'superseded' },
      { attributed: true, last_seq: 2, records_lost: 0, end_cause: 'superseded' },
    ];
    expect(await epochs()).toEqual([
      first,
      second,
      { attributed: false, last_seq: 1, records_lost: 0, end_cause: null },
    ]);
    // The node's own agent enrols again and sends what was refused.
    const renewed = await enrol('node-a', 'agent-a');
    await signed(agent.batch(3, events(3, 4), { held }), renewed);
    await acked(agent, 4);
    expect((await epochs())[1]).toEqual({ ...second, last_seq: 4 });
  });

  test('evidence of a node whose key has expired is accepted unsigned, and marked, by a controller with which nobody can enrol', async () => {
    const key = await enrol('node-a', 'agent-a');
    const agent = agentIncarnation('node-a');
    await signed(agent.batch(1, events(1, 2)), key);
    await acked(agent, 2);
    await rows("UPDATE store.node_key SET expires_at = now() - interval '1 second'");
    await start('accept', { enrols: false });
    await signed(agent.batch(3, events(3, 4)), key);
    await acked(agent, 4);
    expect(await attributed()).toEqual([{ node: 'node-a', attributed: false, records: 4 }]);
  });

  test('evidence of a node that has not enrolled is not stored where signatures are required', async () => {
    await start('require');
    const agent = agentIncarnation('node-a');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    expect(await rejected()).toEqual([{ reason: 'not_signed', claimed_node: 'node-a' }]);
    expect(await attributed()).toEqual([]);
    await refusals('not_signed', 1);
    const key = await enrol('node-a', 'agent-a');
    await signed(agent.batch(1, events(1, 2)), key);
    await acked(agent, 2);
    expect(await attributed()).toEqual([{ node: 'node-a', attributed: true, records: 2 }]);
  });

  test('is not changed by a signed batch that somebody repeats', async () => {
    const key = await enrol('node-a', 'agent-a');
    const [earlier, agent] = [agentIncarnation('node-a', 1, 120_000), agentIncarnation('node-a', 2)];
    const old = earlier.batch(1, events(1, 2));
    await signed(old, key);
    await acked(earlier, 2);
    const held = [
      { epoch: earlier.epoch, incarnation: 1, last: 2 },
      { epoch: agent.epoch, incarnation: 2, last: 9 },
    ];
    const first = agent.batch(1, events(1, 2), { held, lost: [{ from: 3, to: 3, cause: 'spool_full' }] });
    await signed(first, key);
    await signed(agent.batch(4, events(4, 9), { held, lost: first.lost }), key);
    await acked(agent, 9);
    const stored = async () => ({
      epochs: await rows(
        `SELECT epoch, incarnation, acked_seq, last_seq, records_stored, records_lost, end_cause, started_at, complete_through,
                decided_through, last_seen, attributed FROM plegwatch.epochs ORDER BY incarnation`,
      ),
      events: await rows('SELECT * FROM plegwatch.container_events ORDER BY epoch, seq'),
      gaps: await rows('SELECT * FROM plegwatch.gaps ORDER BY from_at, scope'),
      node: await rows('SELECT node, last_seen, mode, stream_state FROM plegwatch.nodes'),
    });
    const before = await stored();
    const duplicates = () => sumOf('plegwatch_records_total', { result: 'duplicate' });
    expect(await duplicates()).toBe(0);
    await signed(old, key);
    await signed(first, key);
    await waitFor('both are handled', async () => (await duplicates()) === 4);
    expect(await stored()).toEqual(before);
  });

  test('cannot be forged with another key, and a forged batch is not decompressed', async () => {
    const key = await enrol('node-a', 'agent-a');
    const agent = agentIncarnation('node-a');
    await signed(agent.batch(1, events(1, 2)), key);
    await acked(agent, 2);
    await signed(agent.batch(3, events(3, 3)), newSigningKey());
    expect(await rejected()).toEqual([{ reason: 'bad_signature', claimed_node: 'node-a' }]);
    const { sig } = await encodeBatch(agent.batch(3, events(3, 3)), key);
    const data = { z: Buffer.from('not compressed').toString('base64'), node: 'node-a', sig };
    await bed.sender.sendData(queueOf('node-a', QUEUES), data, 'junk');
    expect(await rejected(2)).toEqual(Array(2).fill({ reason: 'bad_signature', claimed_node: 'node-a' }));
    expect(await bed.sender.reply(agent)).toMatchObject({ ackedSeq: 2 });
  });

  test('is not believed with the signature of another node or of another cluster', async () => {
    const [keyA, keyB] = [await enrol('node-a', 'agent-a'), await enrol('node-b', 'agent-b')];
    const agent = agentIncarnation('node-a');
    const batch = agent.batch(1, events(1, 2));
    // Node B signs what it says is of A: under its own name, and under that of A.
    const ofB = await encodeBatch({ ...batch, node: 'node-b' }, keyB);
    const { z } = await encodeBatch(batch);
    await bed.sender.sendData(0, { z, node: 'node-b', sig: ofB.sig }, 'one');
    const packed = await encodeBatch(batch, keyB);
    await bed.sender.sendData(0, { ...packed, node: 'node-a' }, 'two');
    const otherCluster = await encodeBatch({ ...batch, cluster: 'elsewhere' }, keyA);
    await bed.sender.sendData(0, otherCluster, 'three');
    expect(await rejected(3)).toEqual([
      { reason: 'bad_signature', claimed_node: 'node-a' },
      { reason: 'bad_signature', claimed_node: 'node-a' },
      { reason: 'bad_signature', claimed_node: 'node-b' },
    ]);
    expect(await attributed()).toEqual([]);
  });

  test('that node B signed properly and that says it is of node A is refused', async () => {
    const keyB = await enrol('node-b', 'agent-b');
    const batch = agentIncarnation('node-a').batch(1, events(1, 2));
    const { z } = await encodeBatch(batch);
    const statement = batchStatement({ cluster: CLUSTER, node: 'node-b' }, Buffer.from(z, 'base64'));
    await bed.sender.sendData(0, { z, node: 'node-b', sig: signatureOf(keyB, statement) }, 'one');
    expect(await rejected()).toEqual([{ reason: 'other_node', claimed_node: 'node-a' }]);
    expect(await attributed()).toEqual([]);
  });

  test('signed with an expired key is refused where signatures are required', async () => {
    await start('require');
    const key = await enrol('node-a', 'agent-a');
    await rows("UPDATE store.node_key SET expires_at = now() - interval '1 second'");
    await start('require');
    const agent = agentIncarnation('node-a');
    await signed(agent.batch(1, events(1, 2)), key);
    expect(await rejected()).toEqual([{ reason: 'no_valid_key', claimed_node: 'node-a' }]);
    await refusals('no_valid_key', 1);
  });

  test('cannot be signed with a key that a stolen token enrolled: one of another node, account or audience, or of no pod', async () => {
    const stolen = [
      await tokenOf('agent-b'),
      await tokenOf('other-a', { account: 'other' }),
      await tokenOf('agent-a', { audience: 'https://kubernetes.default.svc.cluster.local' }),
      await kubectl('create', 'token', 'agent', '-n', NAMESPACE, `--audience=${AUDIENCE}`),
      'no.token.atall',
    ];
    for (const token of stolen) await sendEnrolment('node-a', token, newSigningKey());
    expect(await rejected(5)).toEqual(Array(5).fill({ reason: 'enrolment', claimed_node: 'node-a' }));
    const errors = await rows<{ error: string }>('SELECT error FROM store.rejected ORDER BY error');
    expect(errors.map(({ error }) => error.replace(/:.*(?= )|not accept the token: .*/, '…'))).toHaveLength(
      5,
    );
    expect(errors.map(({ error }) => error)).toEqual(
      expect.arrayContaining([
        'the token is of node node-b',
        'the token is of system:serviceaccount:plegwatch:other',
        'the token is not bound to a pod',
      ]),
    );
    expect(await nodeKeys()).toEqual([]);
  });

  test('cannot be signed after a replayed enrolment but with the same key, and no longer than before', async () => {
    const key = newSigningKey();
    const sealed = await sendEnrolment('node-a', await tokenOf('agent-a'), key);
    await waitFor('the key is enrolled', async () => (await nodeKeys()).length === 1);
    const before = await nodeKeys();
    await results('enrolled', 1);
    await bed.sender.sendData(queueOf('node-a', QUEUES), { enrol: sealed }, 'replayed');
    await results('enrolled', 2);
    expect(await nodeKeys()).toEqual(before);
    // A changed one cannot be opened.
    const bytes = Buffer.from(sealed, 'base64');
    bytes[60] = (bytes[60] ?? 0) ^ 1;
    await bed.sender.sendData(0, { enrol: bytes.toString('base64') }, 'changed');
    expect(await rejected()).toEqual([{ reason: 'enrolment', claimed_node: '' }]);
  });

  test('cannot be signed for longer than a day with one enrolment, however long the token is valid', async () => {
    const key = newSigningKey();
    const sealed = await sendEnrolment('node-a', await tokenOf('agent-a', { duration: '1000h' }), key);
    const expiries = () =>
      rows<{ hours: number }>(
        'SELECT round(extract(epoch FROM expires_at - enrolled_at) / 3600)::int AS hours FROM store.node_key',
      );
    await waitFor('the key is enrolled', async () => (await nodeKeys()).length === 1);
    expect(await expiries()).toEqual([{ hours: 24 }]);
    // A token that is valid for longer renews the key when it is shown again.
    await rows("UPDATE store.node_key SET expires_at = now() + interval '1 hour'");
    await bed.sender.sendData(queueOf('node-a', QUEUES), { enrol: sealed }, 'again');
    await waitFor('the key is renewed', async () => (await expiries())[0]?.hours === 24);
  });

  test('cannot be signed with a key that the token of a deleted pod enrolled', async () => {
    await pod('agent-gone', 'node-c');
    const token = await tokenOf('agent-gone');
    await kubectl('delete', 'pod', 'agent-gone', '-n', NAMESPACE, '--grace-period=0', '--force');
    await sendEnrolment('node-c', token, newSigningKey());
    expect(await rejected()).toEqual([{ reason: 'enrolment', claimed_node: 'node-c' }]);
    expect(await nodeKeys()).toEqual([]);
  });

  test('is signed with a key that was enrolled where tokens do not name their node: the pod does', async () => {
    const unnamed: Pick<KubeClient, 'reviewToken' | 'get'> = {
      get: kube.get,
      async reviewToken(token, audiences) {
        const status = await kube.reviewToken(token, audiences);
        const extra = Object.entries(status.extra).filter(([name]) => !name.includes('/node-'));
        return { ...status, extra: Object.fromEntries(extra) };
      },
    };
    await start('require', { reviewer: unnamed });
    await sendEnrolment('node-b', await tokenOf('agent-a'), newSigningKey());
    expect(await rejected()).toEqual([{ reason: 'enrolment', claimed_node: 'node-b' }]);
    const key = await enrol('node-a', 'agent-a');
    const agent = agentIncarnation('node-a');
    await signed(agent.batch(1, events(1, 2)), key);
    await acked(agent, 2);
  });

  test('is acknowledged with a signature, which replaces a later reply that a stranger wrote', async () => {
    const agent = agentIncarnation('node-a');
    const forged = JSON.stringify({ ackGeneration: 2_147_483_646, ackedSeq: 2 });
    await bed.sender.redis.hset(ackReplyKey(CLUSTER, 'node-a'), agent.epoch, forged);
    await bed.sender.send(agent.batch(1, events(1, 2)));
    await acked(agent, 2);
    expect((await bed.sender.reply(agent))?.sig).toMatch(/^[A-Za-z0-9+/]{86}==$/);
  });

  test('is acknowledged with a signature from the start of a controller on: it reads its keys before it takes what is queued', async () => {
    await bed.stop();
    const agent = agentIncarnation('node-a');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    // Longer than taking a job takes.
    const slowly = async () => {
      for (let i = 0; i < 100; i++) await bed.sender.left();
      return keys;
    };
    await start('accept', { load: slowly });
    await acked(agent, 2);
    expect((await bed.sender.reply(agent))?.sig).toMatch(/^[A-Za-z0-9+/]{86}==$/);
  });

  test('is stored and not acknowledged while a controller that has to sign cannot read its keys', async () => {
    let isAway = true;
    const load = () => (isAway ? Promise.reject(new Error('the API server is away')) : loadKeys());
    await start('accept', { load, readWithinMs: 500 });
    const agent = agentIncarnation('node-a');
    await bed.sender.send(agent.batch(1, events(1, 2)));
    await waitFor('the batch is handled', async () => (await bed.sender.left()) === 0);
    expect(await attributed()).toEqual([{ node: 'node-a', attributed: false, records: 2 }]);
    expect(await bed.sender.reply(agent)).toBeNull();
    isAway = false;
    // The agent asks again.
    await waitFor('the acknowledgement', async () => {
      await bed.sender.send(agent.batch(1, events(1, 2)));
      return (await bed.sender.reply(agent)) !== null;
    });
    expect((await bed.sender.reply(agent))?.sig).toMatch(/^[A-Za-z0-9+/]{86}==$/);
  });

  test('is sealed to keys that every controller shares', async () => {
    expect(publicKeysOf(await loadKeys())).toEqual(publicKeysOf(keys));
  });
});

async function start(
  mode: AttributionMode,
  {
    reviewer = kube,
    load = loadKeys,
    readWithinMs = WITHIN_MS,
    enrols = true,
  }: {
    reviewer?: Pick<KubeClient, 'reviewToken' | 'get'>;
    load?: () => Promise<ControllerKeys>;
    /** How long the start waits for the keys: default, as long as a busy machine takes to read them, as nobody sends again what was not acknowledged. */
    readWithinMs?: number;
    enrols?: boolean;
  } = {},
): Promise<void> {
  const enrolment = { kube: reviewer, account: ACCOUNT, loadKeys: load };
  const attribution = enrols ? { mode, enrolment, readWithinMs } : { mode };
  await bed.start({ attribution });
}

const loadKeys = () =>
  loadControllerKeys(kube, { name: 'keys', secretNamespace: NAMESPACE, configMapNamespace: NAMESPACE });

function ship(spool: Spool, enrolment: NodeEnrolment, controllerKeys: ControllerKeyFile): Shipper {
  return new Shipper({
    redis: { redisUrl: bed.redis.urlOf('agent') },
    cluster: CLUSTER,
    node: 'node-a',
    spool,
    enrolment,
    controllerKeys,
    intervals: {
      intervalAckGeneration: millis(300_000),
      intervalRetiredEpochs: millis(3_600_000),
      intervalResend: millis(1_000),
      intervalIdle: millis(15_000),
      intervalRedisRetry: millis(100),
    },
    log: silent,
  });
}

/** The keys that the agents mount. */
async function publishedKeys(): Promise<string> {
  const published = await kube.get(configMapsOf(NAMESPACE), 'keys');
  return String(Object(published)['data']?.[PUBLIC_KEYS_FILE]);
}

async function kubectl(...args: readonly string[]): Promise<string> {
  return (await run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args])).trim();
}

async function pod(name: string, nodeName: string, serviceAccountName = 'agent'): Promise<void> {
  await kube.apply(
    { group: '', version: 'v1', plural: 'pods', namespace: NAMESPACE },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: NAMESPACE },
      spec: { nodeName, serviceAccountName, containers: [{ name: 'agent', image: 'plegwatch' }] },
    },
  );
}

/** Each is asked for once: a pod shows its token until that expires. */
const tokens = new Map<string, Promise<string>>();

function tokenOf(
  pod: string,
  { account = 'agent', audience = AUDIENCE, duration = '1h' } = {},
): Promise<string> {
  const args = [
    ...['create', 'token', account, '-n', NAMESPACE, `--audience=${audience}`, `--duration=${duration}`],
    ...['--bound-object-kind=Pod', `--bound-object-name=${pod}`],
  ];
  const token = tokens.get(args.join(' ')) ?? kubectl(...args);
  tokens.set(args.join(' '), token);
  return token;
}

async function sendEnrolment(node: string, token: string, key: KeyObject): Promise<string> {
  const sealKey = publicKeyOf(publicKeysOf(keys).seal, 'X25519');
  if (sealKey === null) throw new Error('the controller has no key');
  const enrol = sealEnrolment({ cluster: CLUSTER, node, token }, key, sealKey);
  const handled = await total();
  await bed.sender.sendData(queueOf(node, QUEUES), { enrol }, `enrol.${randomUUID()}`);
  await waitFor('the enrolment is handled', async () => (await total()) > handled);
  return enrol;
}

async function enrol(node: string, pod: string): Promise<KeyObject> {
  const key = newSigningKey();
  const sealed = await sendEnrolment(node, await tokenOf(pod), key);
  await waitFor('the confirmation', async () => {
    const json = await bed.sender.redis.hget(ackReplyKey(CLUSTER, node), ENROLMENT_FIELD);
    return json?.includes(enrolmentDigest(sealed));
  });
  return key;
}

const signed = async (batch: Parameters<typeof encodeBatch>[0], key: KeyObject): Promise<void> =>
  bed.sender.sendData(queueOf(batch.node, QUEUES), await encodeBatch(batch, key), batchId(batch));

const rejected = (count = 1) =>
  waitFor(`${count} rejected`, async () => {
    const found = await rows<{ reason: string; claimed_node: string }>(
      'SELECT reason, claimed_node FROM store.rejected ORDER BY reason, claimed_node',
    );
    return found.length >= count && found;
  });

/** The keys that are kept, and whether the controller's signature is under them. */
async function signers() {
  const kept = await rows<{ name: string; public_key: Buffer; signature: Buffer }>(
    'SELECT n.name, s.public_key, s.signature FROM store.node_signer s JOIN store.node n USING (node_id) ORDER BY 1',
  );
  return kept.map(({ name: node, public_key, signature }) => {
    const key = public_key.toString('base64url');
    const statement = nodeKeyStatement({ cluster: CLUSTER, node }, key);
    const isSigned = isSignedBy(createPublicKey(keys.sign), statement, signature.toString('base64'));
    return { node, key, isSigned };
  });
}

const attributed = () =>
  rows('SELECT node, attributed, records_stored::int AS records FROM plegwatch.epochs ORDER BY node');

/** The message of the condition `AgentReporting`, and whether the page says that nothing is signed. */
async function saysOfItsAgent(node: string): Promise<readonly [string | undefined, boolean]> {
  const [{ node_id: id = 0 } = {}] = await rows(`SELECT node_id FROM store.node WHERE name = '${node}'`);
  const [evidence] = (await bed.store.run(readEvidence, [[Number(id)]])).rows;
  if (evidence === undefined) throw new Error(`there is no evidence of ${node}`);
  const conditions = conditionsOf(evidence, {});
  const page = await timelineAnswer(
    createReader(bed.store, undefined, 1)(AbortSignal.timeout(60_000)),
    new URLSearchParams({ cluster: CLUSTER, node, last: '3600' }),
  );
  return [conditions.find(({ type }) => type === 'AgentReporting')?.message, page.isUnsigned];
}

const nodeKeys = () =>
  rows('SELECT n.name, k.* FROM store.node_key k JOIN store.node n USING (node_id) ORDER BY 1, 4');

async function sumOf(name: string, labels: Record<string, string> = {}): Promise<number> {
  const { values = [] } = (await bed.metrics.registry.getSingleMetric(name)?.get()) ?? {};
  return values
    .filter((value) => Object.entries(labels).every(([label, wanted]) => value.labels[label] === wanted))
    .reduce((sum, { value }) => sum + value, 0);
}
const resultsOf = (result: string) => sumOf('plegwatch_enrolments_total', { result });
const total = () => sumOf('plegwatch_enrolments_total');
const results = (result: string, count: number) =>
  waitFor(`${count} ${result}`, async () => (await resultsOf(result)) === count);
/** A refusal is counted once its row is stored. */
const refusals = (reason: string, count: number) =>
  waitFor(
    `${count} ${reason}`,
    async () => (await sumOf('plegwatch_unattributed_batches_refused_total', { reason })) === count,
  );
