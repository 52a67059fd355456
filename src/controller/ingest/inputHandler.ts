/*
 * Handles one input of an inbox, whatever text it is, and removes it when that is done.
 *
 *   not JSON, not a batch, another cluster's,
 *   not signed by its node where it has to be                        a row in `rejected`; no acked seq moves
 *   an enrolment                                                     handed to the enroller
 *   a newer version                                                  left unacknowledged: the agent reads what we accept
 *   a batch                                                          committed, then its reply is published
 *
 * A batch whose node somebody else has locked is put aside, and so is one on which a statement times out; if that happens to it again, and other
 * batches were stored meanwhile, its records become gaps.
 *
 * If Postgres or Redis is unavailable it waits here, then asks for the job to be delayed. Our own faults are logged and retried
 * later. Nothing is discarded and nothing is acknowledged early.
 */
import type { KeyObject } from 'node:crypto';
import { Backoff } from '../../platform/backoff.ts';
import { messageOf } from '../../platform/errors.ts';
import { Permits } from '../../platform/permits.ts';
import { sleep } from '../../platform/sleep.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import {
  decodeBatch,
  type Envelope,
  MAX_BATCH_BYTES,
  MAX_SIGN_DECODED_BYTES,
  type RefusedBatch,
} from '../../protocol/batch.ts';
import { enrolmentIn } from '../../protocol/enrolment.ts';
import type { RedisClient } from '../../redis/client.ts';
import { databaseErrorKind } from '../../store/databaseError.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { Store } from '../../store/store.ts';
import type { IngestIntervals } from '../config.ts';
import { ATTRIBUTION_REFUSALS, type Attribution } from '../keys/attribution.ts';
import type { Enroller } from '../keys/enroller.ts';
import type { ControllerMetrics } from '../metrics.ts';
import { BatchCommitter, type ReadBatch } from './batchCommitter.ts';
import type { CommitContext, CommittedBatch } from './commitBatch.ts';
import type { RejectedBatch } from './epoch.ts';
import { type Inbox, InboxError, isRedisFull, SHOWN } from './inbox.ts';
import type { InputHandler, JobOutcome } from './queueWorker.ts';
import { type Rejection, storeRejection } from './rejections.ts';
import { publishReply, ReplyError } from './replies.ts';

export interface InputHandlerOptions extends CommitContext {
  readonly store: SqlRunner & Pick<Store, 'transaction'>;
  readonly cluster: string;
  readonly inboxOf: (queue: number) => Pick<Inbox, 'read' | 'remove'>;
  readonly attribution: Attribution;
  readonly intervals: IngestIntervals;
  readonly redis: RedisClient;
  /** Null if replies are not signed here. */
  readonly signKey: (() => KeyObject | null) | null;
  /** Takes what an agent sealed to enrol its node. Null if nobody can enrol here. */
  readonly enroller: Pick<Enroller, 'accept'> | null;
  /** How many connections the pool of the store has. */
  readonly connections: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly metrics: ControllerMetrics;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
  /** Aborted when the controller stops: no more waiting. */
  readonly signal: AbortSignal;
}

/** Signs of life. Neither method throws. */
export interface SignHandler {
  /** Null for what is no sign that its node may have sent, which is dealt with then. */
  readSign(queue: number, id: string, sign: string): Promise<ReadInput | null>;
  /** Applies what a sign says, unless its node is locked or Postgres is unavailable. */
  applySign(sign: ReadInput): Promise<void>;
}

const REJECTIONS = {
  implausible: 'implausible_seq',
  over_quota: 'over_quota',
  unknown_node: 'unknown_node',
  unsigned: 'attributed_epoch',
} as const satisfies Record<RejectedBatch['is'], Rejection['reason']>;

const BACKOFF = { firstMs: 250, maxMs: 4_000 };

/** How long a job is delayed whose node somebody else has locked. */
const BUSY_DELAY_MS = 1_000;
/** How many jobs are read at a time, and how many that are larger than those of agents there are in memory. */
const MAX_READ = 16;
const USUAL_BYTES = 2 * MAX_BATCH_BYTES;

export function createInputHandler(options: InputHandlerOptions): InputHandler & SignHandler {
  // Where nobody can enrol, a key that expired stays expired: its node goes on unsigned.
  const mustBeSigned = options.enroller !== null;
  const committer = new BatchCommitter({ ...options, mustBeSigned });
  const reading = new Permits(MAX_READ);
  return {
    handle: (queue, id) =>
      retry(options, queue, async () => {
        const release = await reading.take();
        try {
          const inbox = options.inboxOf(queue);
          const input = await inbox.read(id);
          // Another controller may have handled it.
          if (input === null) return;
          await handleInput(options, { queue, id, input, committer, release }).catch(unlessUnanswered);
          await inbox.remove(id);
        } finally {
          release();
        }
      }),
    async readSign(queue, id, sign) {
      const release = await reading.take();
      try {
        return await readInput(options, { queue, id, input: sign }, 'sign');
      } catch (failure) {
        signFailed(options, queue, failure);
        return null;
      } finally {
        release();
      }
    },
    async applySign(sign) {
      try {
        await commitInput(options, committer, sign);
      } catch (failure) {
        signFailed(options, sign.queue, failure);
      }
    },
  };
}

function signFailed({ log }: InputHandlerOptions, queue: number, failure: unknown): void {
  log.warn({ queue, error: messageOf(failure) }, 'sign of life dropped');
}

/** A full Redis refuses the answer to what is stored. The input must leave it all the same, and its sender asks again. */
function unlessUnanswered(error: unknown): void {
  if (!isRedisFull(error instanceof ReplyError ? error.cause : error)) throw error;
}

/** Nothing is wrong with the batch, but somebody else has locked its node: it waits without keeping others from their turn. */
class NodeBusy extends Error {
  override readonly name = 'NodeBusy';
}

async function retry(
  { log, intervals, now, partitions, signal }: InputHandlerOptions,
  queue: number,
  work: () => Promise<void>,
): Promise<JobOutcome> {
  const deadline = now() + intervals.intervalStoreWait / 1000;
  const backoff = new Backoff(BACKOFF);
  for (;;) {
    try {
      await work();
      return { done: true };
    } catch (failure) {
      const error = messageOf(failure);
      if (failure instanceof NodeBusy) {
        log.warn({ queue, error }, 'batch put aside');
        return { done: false, delayMs: BUSY_DELAY_MS };
      }
      if (!isUnavailable(failure)) {
        log.error({ queue, error }, 'batch could not be stored and will be retried');
        partitions.forget();
        return { done: false, delayMs: intervals.intervalFaultDelay / 1000 };
      }
      log.warn({ queue, error }, 'waiting to store a batch');
      if (signal.aborted || now() > deadline) {
        return { done: false, delayMs: intervals.intervalJobDelay / 1000 };
      }
      await sleep(backoff.next(), signal);
    }
  }
}

const isUnavailable = (error: unknown): boolean =>
  error instanceof InboxError ||
  error instanceof ReplyError ||
  ['outage', 'conflict'].includes(databaseErrorKind(error));

/** The text that an agent added, and where. */
interface Added {
  readonly queue: number;
  readonly id: string;
  readonly input: string;
}

interface Input extends Added {
  readonly committer: Pick<BatchCommitter, 'commit'>;
  /** Lets another input be read. */
  readonly release: () => void;
}

async function handleInput(
  options: InputHandlerOptions,
  { committer, release, ...added }: Input,
): Promise<void> {
  const { metrics, now } = options;
  const started = now();
  const read = await readInput(options, added, 'batch');
  if (read === null) return;
  if (read.bytes <= USUAL_BYTES) release();
  const outcome = await commitInput(options, committer, read);
  if (outcome === 'busy') throw new NodeBusy(`node ${read.envelope.node} is locked`);
  if (outcome === null) return;
  metrics.batchSeconds.observe((now() - started) / 1000);
  return publishReply(options, read.envelope, outcome);
}

/** An input that is a batch which its node may have sent. */
export interface ReadInput extends Added, ReadBatch {
  readonly isSign: boolean;
}

/** Null for what is no such batch, which is dealt with then. */
async function readInput(
  options: InputHandlerOptions,
  { queue, id, input }: Added,
  as: 'batch' | 'sign',
): Promise<ReadInput | null> {
  const { cluster, attribution } = options;
  const rejectAs = async (reason: Rejection['reason'], claimedNode: string, error: string) => {
    await reject(options, id, { queue, reason, error, claimedNode, input });
    return null;
  };
  const data = parsed(input);
  if (data === undefined) return rejectAs('not_json', '', 'the input is not JSON');
  const enrolment = enrolmentIn(data);
  if (enrolment !== null && as === 'batch') {
    await options.enroller?.accept(enrolment);
    return null;
  }
  const sender = await attribution.senderOf(data);
  if (sender.is === 'refused') return rejectAs(sender.reason, sender.claimedNode, sender.error);
  const decoded = await decodeBatch(data, as === 'sign' ? MAX_SIGN_DECODED_BYTES : undefined);
  if (!decoded.ok) {
    if (decoded.reason === 'version') return leave(options, queue, decoded);
    return rejectAs(decoded.reason, decoded.claimedNode, decoded.error);
  }
  const envelope = decoded.value;
  const { node } = envelope;
  if (envelope.cluster !== cluster)
    return rejectAs('other_cluster', node, `cluster: ${envelope.cluster} is not ${cluster}`);
  if (as === 'sign' && envelope.records.length + envelope.objects.length > 0)
    return rejectAs('not_a_batch', node, 'records: a sign of life has none');
  const isSigned = sender.is === 'signed';
  if (isSigned && sender.node !== node)
    return rejectAs('other_node', node, `node ${sender.node} signed a batch of node ${node}`);
  if (!isSigned && !(await attribution.mayBeUnsigned(node)))
    return rejectAs('not_signed', node, `a batch of node ${node} is not signed`);
  return { queue, id, input, isSign: as === 'sign', envelope, isSigned, bytes: decoded.bytes };
}

/** Commits it, and counts and logs what is committed. Null if it is refused, which is dealt with then. */
async function commitInput(
  options: InputHandlerOptions,
  committer: Pick<BatchCommitter, 'commit'>,
  { queue, id, input, isSign, envelope, isSigned, bytes }: ReadInput,
): Promise<CommittedBatch | 'busy' | null> {
  const outcome = await committer.commit(isSign ? null : queue, { envelope, isSigned, bytes });
  if (outcome.is === 'busy') return 'busy';
  if (outcome.is !== 'committed') {
    const { error } = outcome;
    await reject(options, id, {
      queue,
      reason: REJECTIONS[outcome.is],
      error,
      claimedNode: envelope.node,
      input,
    });
    return null;
  }
  report(options, envelope, outcome);
  return outcome;
}

/** Undefined if it is not JSON. */
function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

function report({ metrics, log }: InputHandlerOptions, envelope: Envelope, outcome: CommittedBatch): void {
  const { node, epoch } = envelope;
  count(metrics, outcome, envelope);
  for (const { seq, cause, error } of outcome.unstorable) {
    log.warn({ node, epoch, seq, cause, error }, 'record became a gap');
  }
  if (outcome.overQuota > 0) {
    log.warn(
      { node, epoch, records: outcome.overQuota },
      'node is over its quota of rows, records became a gap',
    );
  }
  for (const claim of outcome.unbelieved) {
    metrics.unbelievedClaims.inc({ claim });
    log.warn({ node, epoch, claim }, 'claim of a batch not believed');
  }
}

function leave({ metrics, log }: InputHandlerOptions, queue: number, refused: RefusedBatch): null {
  const { error, claimedNode } = refused;
  metrics.records.inc({ result: 'version' });
  log.warn({ queue, claimedNode, error }, 'batch of a newer version left unacknowledged');
  return null;
}

async function reject(options: InputHandlerOptions, id: string, rejection: Rejection): Promise<void> {
  const { store, clusterId, metrics, log } = options;
  await storeRejection(store, clusterId, rejection);
  const { queue, reason, error, claimedNode, input } = rejection;
  metrics.records.inc({ result: 'rejected' });
  const refusal = ATTRIBUTION_REFUSALS.find((each) => each === reason);
  if (refusal !== undefined) metrics.attributionRefusals.inc({ reason: refusal });
  const shown = { id: id.slice(0, SHOWN), bytes: Buffer.byteLength(input) };
  log.warn({ queue, reason, error, claimedNode, ...shown }, 'input rejected');
}

function count(metrics: ControllerMetrics, outcome: CommittedBatch, { wall0 }: Envelope): void {
  metrics.records.inc({ result: 'stored' }, outcome.stored);
  metrics.records.inc({ result: 'duplicate' }, outcome.duplicate);
  metrics.records.inc({ result: 'lost' }, outcome.unstorable.length);
  metrics.records.inc({ result: 'over_quota' }, outcome.overQuota);
  metrics.lastCommit.setToCurrentTime();
  metrics.lagSeconds.set(Math.max(0, Date.now() / 1000 - wall0 / 1e6));
}
