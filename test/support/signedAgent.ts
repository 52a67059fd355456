/*
 * An agent that signs, from its spool to the store: a real spool, the builder of its batches, and ingest's commit, without a queue. Its key is enrolled as the
 * controller enrols one.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { BatchBuilder } from '../../src/agent/ship/batchBuilder.ts';
import { Deliveries } from '../../src/agent/ship/deliveries.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import { commitBatch } from '../../src/controller/ingest/commitBatch.ts';
import { createPartitionCache } from '../../src/controller/ingest/partitionCache.ts';
import { upsertNodeKey } from '../../src/controller/keys/statements.ts';
import { decodeBatch, type Envelope } from '../../src/protocol/batch.ts';
import { newSigningKey, nodeKeyStatement, publicKeyText, signatureOf } from '../../src/protocol/signature.ts';
import { millis, seq } from '../../src/protocol/units.ts';
import { ensureNode } from '../../src/store/statements.ts';
import type { Store } from '../../src/store/store.ts';
import { CLUSTER } from './batches.ts';

const INTERVALS = {
  intervalAckGeneration: millis(3_600_000),
  intervalRetiredEpochs: millis(3_600_000),
  intervalResend: millis(3_600_000),
};

export class SignedAgent {
  readonly #store: Store;
  readonly #spool: Spool;
  readonly #builder: BatchBuilder;
  readonly #deliveries: Deliveries;
  readonly node: string;

  /** Without a key it does not sign. `isSigned`: whether its batches are found to be signed by its node. */
  constructor(store: Store, spool: Spool, key?: KeyObject, isSigned = key !== undefined) {
    this.#store = store;
    this.#spool = spool;
    this.#deliveries = new Deliveries(spool, INTERVALS);
    this.#deliveries.followSpool();
    this.#builder = new BatchBuilder(spool, this.#deliveries, key);
    this.#isSigned = isSigned;
    this.node = spool.current.meta.node;
  }
  readonly #isSigned: boolean;

  /** Ships what is in the spool in batches of this many records. `arrive`: what becomes of the batches, all of which arrive in order if it is left out. */
  async ship(size = 500, arrive = (batches: Envelope[]): Envelope[] => batches): Promise<Envelope[]> {
    const batches: Envelope[] = [];
    for (const delivery of this.#deliveries.all) {
      for (;;) {
        const entries = await delivery.epoch.read(delivery.nextSeq, size, 256 * 1024);
        if (entries.length === 0) break;
        const batch = await this.#builder.build(delivery, entries);
        delivery.seal(batch);
        const decoded = await decodeBatch(batch.data);
        if (!decoded.ok) throw new Error(decoded.error);
        batches.push(decoded.value);
      }
    }
    const arrived = arrive(batches);
    await this.commit(arrived);
    return arrived;
  }

  async commit(batches: readonly Envelope[]): Promise<void> {
    const settings = await this.#store.readSettings();
    const context = {
      store: this.#store,
      clusterId: await this.#store.ensureCluster(CLUSTER),
      settings: () => settings,
      partitions: createPartitionCache(),
      isSigned: this.#isSigned,
    };
    for (const batch of batches) {
      const outcome = await commitBatch(context, batch);
      if (outcome.is !== 'committed') throw new Error(outcome.error);
      const delivery = this.#deliveries.all.find(({ epoch }) => epoch.meta.epoch === batch.epoch);
      delivery?.epoch.acknowledge(seq(Math.min(outcome.ackedSeq, delivery.epoch.lastSeq)));
    }
  }

  /** Goes on with this seq of an epoch, as after an acknowledgement. Default: the current epoch. */
  goOnAt(next: number, of = this.#spool.current.meta.epoch): void {
    this.#deliveries.all.find(({ epoch }) => epoch.meta.epoch === of)?.skipTo(next);
  }

  get spool(): Spool {
    return this.#spool;
  }
}

/** Enrols the key of a node, as the enroller does. */
export async function enrol(
  store: Store,
  node: string,
  key: KeyObject,
  controllerKey: KeyObject,
): Promise<void> {
  const clusterId = await store.ensureCluster(CLUSTER);
  const publicKey = publicKeyText(key);
  const signature = signatureOf(controllerKey, nodeKeyStatement({ cluster: CLUSTER, node }, publicKey));
  const bytes = [Buffer.from(publicKey, 'base64url'), Buffer.from(signature, 'base64')];
  await store.transaction(async (sql) => {
    await sql.run(ensureNode, [clusterId, node, 'uid']);
    const expires = Date.now() / 1000 + 3600;
    await sql.run(upsertNodeKey, [clusterId, node, bytes[0], expires, 'pod', '', bytes[1]]);
  });
}

export const keyPair = (): { readonly key: KeyObject; readonly publicKey: KeyObject } => {
  const key = newSigningKey();
  return { key, publicKey: createPublicKey(key) };
};
