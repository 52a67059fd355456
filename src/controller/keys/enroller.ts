/*
 * Enrols the keys of nodes: opens what an agent sealed, has the API server review its token, and stores the key until the token expires.
 *
 * It works beside the queues, which never wait for the API server. An enrolment that fails is dropped, because agents ask again. An
 * enrolment that somebody repeats enrols the same key until the same time, and changes nothing.
 */

import type { KubeClient } from '../../kube/client.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import {
  audienceOf,
  ENROLMENT_FIELD,
  type Enrolment,
  type EnrolmentConfirmation,
  enrolmentDigest,
  openEnrolment,
} from '../../protocol/enrolment.ts';
import { ACK_REPLIES_TTL_S, ackReplyKey } from '../../protocol/redisKeys.ts';
import { enrolledStatement, nodeKeyStatement, signatureOf } from '../../protocol/signature.ts';
import type { RedisClient } from '../../redis/client.ts';
import { ensureNode } from '../../store/statements.ts';
import type { Store } from '../../store/store.ts';
import type { ControllerKeys } from './controllerKeys.ts';
import type { NodeKeys } from './nodeKeys.ts';
import { upsertNodeKey } from './statements.ts';
import { reviewToken, type ServiceAccount, type TokenSubject } from './tokenReview.ts';

export const ENROLMENT_RESULTS = ['enrolled', 'refused', 'dropped', 'failed'] as const;
export type EnrolmentResult = (typeof ENROLMENT_RESULTS)[number];

/** Token reviews: this many at once, and this many a second. A big cluster that starts anew has enrolled within minutes. */
const BURST = 200;
const PER_SECOND = 50;
const MAX_AT_ONCE = 16;

export interface EnrollerOptions {
  readonly store: Pick<Store, 'transaction'>;
  readonly cluster: string;
  readonly clusterId: number;
  readonly kube: Pick<KubeClient, 'reviewToken' | 'get'>;
  /** The agents' service account. */
  readonly account: ServiceAccount;
  /** Null while they could not be read. */
  readonly keys: () => ControllerKeys | null;
  readonly nodeKeys: NodeKeys;
  readonly redis: RedisClient;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
  readonly now?: typeof monoNow;
  readonly onResult: (result: EnrolmentResult) => void;
  /** Called with an enrolment that is refused, and the node that it names. */
  readonly onRefused: (error: string, claimedNode: string, sealed: string) => Promise<void>;
}

export class Enroller {
  readonly #options: EnrollerOptions;
  readonly #reviews = new TokenBucket({ capacity: BURST, interval: perSecond(PER_SECOND) });
  readonly #running = new Set<Promise<void>>();

  constructor(options: EnrollerOptions) {
    this.#options = options;
  }

  /** Enrols in the background. Never throws. */
  accept(sealed: string): void {
    const { onResult, log, now = monoNow } = this.#options;
    const keys = this.#options.keys();
    if (keys === null || this.#running.size >= MAX_AT_ONCE || !this.#reviews.tryTake(now())) {
      onResult('dropped');
      return;
    }
    const running = this.#enrol(sealed, keys)
      .then(onResult, (error: unknown) => {
        onResult('failed');
        log.warn({ error: messageOf(error) }, 'a node could not be enrolled');
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Waits for what is under way. */
  async stop(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #enrol(sealed: string, keys: ControllerKeys): Promise<EnrolmentResult> {
    const { cluster, kube, account } = this.#options;
    const opened = openEnrolment(sealed, keys.seal);
    if (!opened.ok) return this.#refuse(opened.error, '', sealed);
    const enrolment = opened.value;
    const { node } = enrolment;
    if (enrolment.cluster !== cluster)
      return this.#refuse(`it is for cluster ${enrolment.cluster}`, node, sealed);
    const audience = audienceOf(cluster);
    const reviewed = await reviewToken(kube, enrolment.token, { audience, account });
    if (!reviewed.ok) return this.#refuse(reviewed.error, node, sealed);
    const subject = reviewed.value;
    if (subject.node !== node) return this.#refuse(`the token is of node ${subject.node}`, node, sealed);
    const validFor = await this.#store(enrolment, subject, keys);
    if (validFor < 1) return this.#refuse('the token has expired, by the clock of Postgres', node, sealed);
    await this.#confirm(sealed, enrolment, validFor, keys);
    return 'enrolled';
  }

  /** Returns for how many seconds the key is valid now; 0 if its token has expired. */
  async #store(
    { node, publicKey }: Enrolment,
    { expiresAt, podUid, nodeUid }: TokenSubject,
    { sign }: ControllerKeys,
  ): Promise<number> {
    const { store, cluster, clusterId, nodeKeys } = this.#options;
    const key = Buffer.from(publicKey, 'base64url');
    const signature = signatureOf(sign, nodeKeyStatement({ cluster, node }, publicKey));
    const values = [clusterId, node, key, expiresAt, podUid, nodeUid, Buffer.from(signature, 'base64')];
    const { rows } = await store.transaction(async (runner) => {
      await runner.run(ensureNode, [clusterId, node, nodeUid]);
      return runner.run(upsertNodeKey, values);
    });
    await nodeKeys.enrolled();
    return rows[0]?.valid_for ?? 0;
  }

  async #confirm(
    sealed: string,
    { cluster, node }: Enrolment,
    validFor: number,
    { sign }: ControllerKeys,
  ): Promise<void> {
    const enrolment = enrolmentDigest(sealed);
    const sig = signatureOf(sign, enrolledStatement({ cluster, node }, enrolment, validFor));
    const confirmation: EnrolmentConfirmation = { enrolment, validFor, sig };
    const { redis } = this.#options;
    const key = ackReplyKey(cluster, node);
    await redis.hset(key, ENROLMENT_FIELD, JSON.stringify(confirmation));
    await redis.expire(key, ACK_REPLIES_TTL_S);
  }

  async #refuse(error: string, claimedNode: string, sealed: string): Promise<EnrolmentResult> {
    await this.#options.onRefused(error, claimedNode, sealed);
    return 'refused';
  }
}
