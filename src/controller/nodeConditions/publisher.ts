/*
 * The publisher writes the verdicts of reports as conditions of their Nodes. Only the leader runs it, and only if it is told to.
 *
 *   noted     the verdicts of the report that was built last, each since when its status is the same
 *   settled   noted for a minute: what flaps faster, such as the restart of a runtime or of an agent, is never published
 *   present   what the Node has, as the watch of Nodes shows it: a Node that says what is settled is not written, whoever wrote it, so a
 *             new leader writes nothing again
 *   held      another manager has a condition of the same type, or the API server refuses the Node: tried again after an hour
 *
 * Each pass compares what is settled with what is present. An unwritten condition therefore waits for the next pass, whatever the reason: the API
 * server is away, or a limit is reached. There are no heartbeats: docs/decisions/0047-node-conditions.md.
 */
import { and, eq } from 'drizzle-orm';
import type { KubeClient } from '../../kube/client.ts';
import { isOfObject, retryAfterMs } from '../../kube/kubeErrors.ts';
import { type KubeNode, nodeOf, type PublishedCondition } from '../../kube/projection.ts';
import type { BackoffOptions } from '../../platform/backoff.ts';
import { readClocks } from '../../platform/clock.ts';
import { errorFields } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { sleep } from '../../platform/sleep.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import { between, type Mono, millis, shift } from '../../protocol/units.ts';
import { oneOf } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { node, reportCondition } from '../../store/schema/tables.ts';
import type { Store } from '../../store/store.ts';
import type { NodeWatch } from '../nodes/nodeWatch.ts';
import { timestamp } from '../reports/text.ts';
import { applyConditions, type NodeIdentity, withdrawConditions } from './nodeStatus.ts';
import {
  conditionsAfter,
  type ReportedCondition,
  SOURCE_TYPES,
  type Verdict,
  verdictsOf,
} from './verdicts.ts';

/** The results of a write. */
export const PUBLISH_RESULTS = ['written', 'no_node', 'conflict', 'refused'] as const;
export type PublishResult = (typeof PUBLISH_RESULTS)[number];

export interface PublisherOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  readonly kube: Pick<KubeClient, 'applyStatus'>;
  readonly nodes: Pick<NodeWatch, 'get' | 'names' | 'synced'>;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly log: Logger;
  readonly onResult: (result: PublishResult) => void;
  /** For tests. */
  readonly pace?: Partial<PublisherPace>;
  readonly clocks?: typeof readClocks;
}

export interface PublisherPace {
  /** Time between two passes. */
  readonly pollMs: number;
  readonly settleMs: number;
  readonly backoff: BackoffOptions;
}

const DEFAULT_PACE: PublisherPace = {
  pollMs: 5_000,
  settleMs: 60_000,
  backoff: { firstMs: 1_000, maxMs: 60_000 },
};
/** Every write of a Node goes to whatever watches Nodes, which may be a program on each of them. The kubelets of 5,000 nodes write 17 a second. */
const WRITES_PER_SECOND = 5;
/** The limit of one Node: three at once, then one in twenty minutes. */
const NODE_LIMIT = { capacity: 3, interval: millis(1_200_000) };
/** So that a problem that settles meanwhile does not wait for a whole fleet. */
const MAX_PER_PASS = 25;
const HOLD_MS = 3_600_000;
/** The watch shows a write within this time, or others have changed it since. */
const WATCH_LAG_MS = 60_000;
const NO_LABELS = { reported: [], stored: [] };

interface Noted {
  readonly uid: string;
  readonly verdicts: readonly { readonly verdict: Verdict; readonly since: Mono }[];
}

/** The state of a Node when its last write was answered. */
interface Answer {
  readonly uid: string;
  readonly published: readonly PublishedCondition[];
  readonly at: Mono;
}

interface PlannedWrite extends NodeIdentity {
  readonly conditions: readonly PublishedCondition[];
}

export interface ConditionPublisher {
  /** A report of the Node with this UID was built. */
  note(name: string, uid: string, conditions: readonly ReportedCondition[]): void;
  /** Resolves when nothing is written any more. */
  stop(): Promise<void>;
}

/** Runs until it is stopped, and survives every failure. */
export function startConditionPublisher(options: PublisherOptions): ConditionPublisher {
  const publisher = new Publisher(options);
  const loop = new Loop({
    work: (signal) => publisher.pass(signal),
    onError: (error, waitMs) =>
      options.log.warn({ ...errorFields(error), waitMs }, 'publishing conditions of Nodes failed, retrying'),
    backoff: { ...DEFAULT_PACE, ...options.pace }.backoff,
    minWaitMs: retryAfterMs,
  });
  loop.start();
  return { note: (...report) => publisher.note(...report), stop: () => loop.stop() };
}

/** For tests; {@link startConditionPublisher} runs its passes. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #pace: PublisherPace;
  readonly #noted = new Map<string, Noted>();
  readonly #answers = new Map<string, Answer>();
  readonly #limits = new Map<string, TokenBucket>();
  readonly #held = new Map<string, { readonly uid: string; readonly until: Mono }>();
  readonly #writeLimit = new TokenBucket({
    capacity: WRITES_PER_SECOND,
    interval: perSecond(WRITES_PER_SECOND),
  });
  #hasRead = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#pace = { ...DEFAULT_PACE, ...options.pace };
  }

  note(name: string, uid: string, conditions: readonly ReportedCondition[]): void {
    const before = this.#noted.get(name);
    const known = before?.uid === uid ? before.verdicts : [];
    const now = this.#now();
    const verdicts = verdictsOf(conditions).map((verdict) => {
      const last = known.find((each) => each.verdict.type === verdict.type);
      return { verdict, since: last?.verdict.status === verdict.status ? last.since : now };
    });
    this.#noted.set(name, { uid, verdicts });
  }

  /** Returns how long to wait until the next one. */
  async pass(signal: AbortSignal): Promise<number> {
    const { nodes, onResult } = this.#options;
    if (!nodes.synced) return this.#pace.pollMs;
    if (!this.#hasRead) await this.#readReports();
    this.#forget();
    const planned = [...nodes.names()].flatMap((name) => this.#plan(name));
    const urgentFirst = planned.toSorted((one, other) => problemsIn(other) - problemsIn(one));
    for (const write of urgentFirst.slice(0, MAX_PER_PASS)) {
      await sleep(this.#writeLimit.reserve(this.#now()) / 1000, signal);
      signal.throwIfAborted();
      onResult(await this.#write(write, signal));
    }
    return planned.length > MAX_PER_PASS ? 0 : this.#pace.pollMs;
  }

  /** The reports that were built before this controller led: those that do not change are not built again for half an hour. */
  async #readReports(): Promise<void> {
    const { store, cluster, nodes } = this.#options;
    const clusterId = await store.ensureCluster(cluster);
    const { type, status, reason, message } = reportCondition;
    const rows = await store.query((db) =>
      db
        .select({ name: node.name, uid: node.node_uid, type, status, reason, message })
        .from(reportCondition)
        .innerJoin(node, eq(node.node_id, reportCondition.node_id))
        .where(and(eq(reportCondition.cluster_id, clusterId), oneOf(type, SOURCE_TYPES))),
    );
    for (const [name, conditions] of Map.groupBy(rows, (row) => row.name)) {
      const uid = nodes.get(name)?.uid;
      if (uid !== undefined && conditions[0]?.uid === uid && !this.#noted.has(name))
        this.note(name, uid, conditions);
    }
    this.#hasRead = true;
  }

  /** The writes that are due to the Node now, if any are. */
  #plan(name: string): readonly PlannedWrite[] {
    const present = this.#options.nodes.get(name);
    const noted = this.#noted.get(name);
    if (present === undefined || noted?.uid !== present.uid) return [];
    const { mono: now, wall } = this.#clocks();
    const held = this.#held.get(name);
    if (held?.uid === present.uid && now < held.until) return [];
    if (this.#limits.get(name)?.has(now) === false) return [];
    const settled = noted.verdicts.filter(({ since }) => between(since, now) >= this.#pace.settleMs * 1000);
    const conditions = conditionsAfter(
      this.#published(name, present, now),
      settled.map(({ verdict }) => verdict),
      timestamp(new Date(wall / 1000).toISOString()),
    );
    return conditions === null ? [] : [{ name, uid: present.uid, conditions }];
  }

  /** The conditions of the Node, by the last answer to a write while the watch may not show that yet. */
  #published(name: string, { uid, published }: KubeNode, now: Mono): readonly PublishedCondition[] {
    const answer = this.#answers.get(name);
    if (answer === undefined) return published;
    const isShown = JSON.stringify(answer.published) === JSON.stringify(published);
    if (answer.uid === uid && !isShown && between(answer.at, now) < WATCH_LAG_MS * 1000)
      return answer.published;
    this.#answers.delete(name);
    return published;
  }

  /** Throws if the write is to be tried again. Nothing is counted against the limit of a Node before it is written. */
  async #write({ conditions, ...identity }: PlannedWrite, signal: AbortSignal): Promise<PublishResult> {
    const { kube, log } = this.#options;
    const { name, uid } = identity;
    try {
      const answer = nodeOf(await applyConditions(kube, identity, conditions, signal), NO_LABELS).node;
      const at = this.#now();
      const limit = this.#limits.get(name) ?? new TokenBucket(NODE_LIMIT);
      limit.reserve(at);
      this.#limits.set(name, limit);
      this.#answers.set(name, { uid, published: answer.published, at });
      const problems = conditions.filter(({ status }) => status === 'True').map(({ type }) => type);
      log.info({ node: name, problems }, 'conditions of a Node published');
      return 'written';
    } catch (error) {
      if (!isOfObject(error)) throw error;
      if (error.code === 404) return this.#gone(name);
      log.warn({ node: name, ...errorFields(error) }, 'conditions of a Node not published');
      // Conditions left there would no longer be kept up to date.
      await withdrawConditions(kube, identity, signal);
      this.#answers.delete(name);
      this.#held.set(name, { uid, until: shift(this.#now(), millis(HOLD_MS)) });
      return error.code === 409 ? 'conflict' : 'refused';
    }
  }

  #gone(name: string): PublishResult {
    this.#noted.delete(name);
    return 'no_node';
  }

  /** Keeps only what is about present Nodes. */
  #forget(): void {
    for (const about of [this.#noted, this.#answers, this.#limits, this.#held]) {
      for (const name of about.keys()) if (this.#options.nodes.get(name) === undefined) about.delete(name);
    }
  }

  #clocks(): ReturnType<typeof readClocks> {
    return (this.#options.clocks ?? readClocks)();
  }

  #now(): Mono {
    return this.#clocks().mono;
  }
}

const problemsIn = ({ conditions }: PlannedWrite): number =>
  conditions.filter(({ status }) => status === 'True').length;
