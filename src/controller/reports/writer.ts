/*
 * The report writer: keeps one PLEGReport for each Node of the cluster. Run by the leader only.
 *
 *   due       a row of the queue; ingest puts it there when something changed, the sweep when time alone did
 *   changed   what a reader cares about differs from what was last shown; anything else is a refresh
 *   quiet     a node that was just written waits, so that a burst of changes is one write
 *
 * One round after another: reports whose Node has gone are deleted, what is due is read, built and, where it changed,
 * written. A row leaves the queue only when it was written and nobody asked again meanwhile; while the API server is away
 * rows stay where they are.
 *
 * Rights it needs: nodes get, list, watch; plegreports.plegwatch.dev get, list, create, patch, delete;
 * plegreports.plegwatch.dev/status patch.
 */

import type { BackoffOptions } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { errorFields, messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { sleep } from '../../platform/sleep.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeStatusError, retryAfterMs } from '../kube/kubeErrors.ts';
import type { NodeWatch } from '../kube/nodes.ts';
import type { KubeNode } from '../kube/projection.ts';
import type { Store } from '../store/store.ts';
import { buildStatus, digestOf, recheckAfter } from './build.ts';
import { SILENT_AFTER_MS } from './conditions.ts';
import type { EvidenceRow } from './evidence.ts';
import { Inventory } from './inventory.ts';
import type { ReportResult } from './metrics.ts';
import { putReport } from './put.ts';
import { type Due, ReportQueue } from './queue.ts';
import type { ReportStatus } from './status.ts';

export interface ReporterOptions {
  readonly store: Pick<Store, 'run' | 'ensureCluster'>;
  readonly kube: KubeClient;
  readonly nodes: NodeWatch;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly log: Logger;
  /** Called with the result of each report that was due. */
  readonly onResult: (result: ReportResult) => void;
  /** Whether pods and containers are named in reports; yes when not said. */
  readonly podNames?: boolean;
  /** Whether ingest could hear everybody for as long as makes an agent silent; taken as true when not said. */
  readonly ingestUpToDate?: () => boolean;
  /** The times and rates it goes by, for tests. */
  readonly pace?: Partial<Pace>;
}

export interface Pace {
  /** How often the queue is looked at. */
  readonly pollMs: number;
  /** At most one write of a node in this time. */
  readonly quietMs: number;
  readonly writesPerSecond: number;
  readonly sweepMs: number;
  /** How often all reports are listed, to find those that others deleted. */
  readonly inventoryMs: number;
  /** A report that nothing changed is written again after this. */
  readonly refreshMs: number;
  readonly backoff: BackoffOptions;
}

export interface Reporter {
  /** Ends after the round under way. */
  stop(): Promise<void>;
  /** Null when reports can be written; otherwise what prevents it. A restart would not cure it. */
  health(): string | null;
  /** Null when rounds end, well or not; otherwise for how long none did. */
  alive(): string | null;
}

const PACE: Pace = {
  pollMs: 500,
  quietMs: 10_000,
  writesPerSecond: 20,
  sweepMs: 10_000,
  inventoryMs: 600_000,
  refreshMs: 4 * 3_600_000,
  backoff: { firstMs: 500, maxMs: 30_000 },
};
const ROUND = 50;
/** Refreshes of one round: few, so that a change never waits long behind them. */
const REFRESHES = 10;
const AT_ONCE = 4;
const STUCK_MS = 300_000;
const CONFLICT_WAIT_MS = 1_000;
/** A report over which the API server failed lets the others go first: it may be the only one. */
const FAILED_WAIT_MS = 5_000;
const REFUSED_WAIT_MS = 300_000;

/** Starts at once and goes on through every failure until it is stopped. */
export function startReporter(options: ReporterOptions): Reporter {
  const { nodes } = options;
  const writer = new ReportWriter(options);
  writer.start();
  return {
    stop: () => writer.stop(),
    health: () => writer.trouble ?? nodes.error ?? (nodes.synced ? null : 'the Nodes are not listed yet'),
    alive: () => {
      const quietMs = performance.now() - writer.roundEndedAt;
      return quietMs < STUCK_MS ? null : `no round has ended for ${Math.round(quietMs / 1000)} s`;
    },
  };
}

interface Planned {
  readonly due: Due;
  readonly row: EvidenceRow;
  readonly node: KubeNode;
  readonly status: ReportStatus;
  readonly digest: string;
  readonly recheckMs: number;
}

class ReportWriter {
  /** Why the last round failed; null when it did not. */
  trouble: string | null = null;
  roundEndedAt = performance.now();

  readonly #options: ReporterOptions;
  readonly #pace: Pace;
  readonly #nodes: NodeWatch;
  readonly #inventory: Inventory;
  readonly #writeLimit: TokenBucket;
  readonly #loop: Loop;
  /** Nodes that came, went or were replaced since the last round. */
  readonly #touched = new Set<string>();
  #queue: ReportQueue | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#pace = { ...PACE, ...options.pace };
    this.#nodes = options.nodes;
    this.#inventory = new Inventory(options.kube);
    const { writesPerSecond } = this.#pace;
    this.#writeLimit = new TokenBucket({ capacity: writesPerSecond, interval: perSecond(writesPerSecond) });
    this.#loop = new Loop({
      work: () => this.#work(),
      onError: (error, waitMs) => this.#failed(error, waitMs),
      backoff: this.#pace.backoff,
      minWaitMs: retryAfterMs,
    });
    options.nodes.onChange((name) => {
      this.#touched.add(name);
      this.#loop.wake();
    });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #work(): Promise<number> {
    try {
      const busy = await this.#round();
      this.trouble = null;
      return busy ? 0 : this.#pace.pollMs;
    } finally {
      this.roundEndedAt = performance.now();
    }
  }

  #failed(error: unknown, waitMs: number): void {
    this.trouble = messageOf(error);
    // What others did meanwhile is not known.
    this.#listedAt = Number.NEGATIVE_INFINITY;
    this.#options.log.warn({ ...errorFields(error), waitMs }, 'reports cannot be written, trying again');
  }

  /** True when there may be more to do at once. */
  async #round(): Promise<boolean> {
    if (!this.#nodes.synced) return false;
    this.#queue ??= new ReportQueue(
      this.#options.store,
      await this.#options.store.ensureCluster(this.#options.cluster),
    );
    const queue = this.#queue;
    if (performance.now() - this.#listedAt >= this.#pace.inventoryMs) await this.#takeInventory(queue);
    await this.#followNodes(queue);
    if (performance.now() - this.#sweptAt >= this.#pace.sweepMs) {
      await queue.sweep(SILENT_AFTER_MS);
      this.#sweptAt = performance.now();
    }
    const due = await queue.due(this.#pace.quietMs, ROUND);
    if (due.length === 0) return false;
    await this.#settle(queue, due);
    return due.length === ROUND;
  }

  /** Lists all reports: orphans are deleted, missing ones asked for. */
  async #takeInventory(queue: ReportQueue): Promise<void> {
    await this.#inventory.load(this.#loop.signal);
    const nodes = [...this.#nodes.names()];
    await queue.goneExcept(nodes);
    const missing = nodes.filter((name) => !this.#hasReport(name));
    await queue.enqueue(missing);
    for (const name of this.#inventory.names()) await this.#removeOrphan(name);
    this.#listedAt = performance.now();
  }

  #hasReport(name: string): boolean {
    const node = this.#nodes.get(name);
    return node !== undefined && this.#inventory.has(name, node);
  }

  async #removeOrphan(name: string): Promise<void> {
    const { log, onResult } = this.#options;
    if (await this.#inventory.removeUnlessOf(name, this.#nodes.get(name), this.#loop.signal)) {
      onResult('deleted');
      log.info({ node: name }, 'the report of a Node that is gone was deleted');
    }
  }

  /** Deals with the Nodes that came, went or were replaced. After a failure the inventory finds what was left undone. */
  async #followNodes(queue: ReportQueue): Promise<void> {
    const names = [...this.#touched];
    this.#touched.clear();
    for (const name of names) await this.#removeOrphan(name);
    await queue.gone(names.filter((name) => this.#nodes.get(name) === undefined));
    await queue.enqueue(
      names.filter((name) => this.#nodes.get(name) !== undefined && !this.#hasReport(name)),
    );
  }

  async #settle(queue: ReportQueue, due: readonly Due[]): Promise<void> {
    const planned = await this.#plan(queue, due);
    const changed = planned.filter((plan) => this.#isChanged(plan));
    const rest = planned.filter((plan) => !this.#isChanged(plan));
    const stale = rest.filter((plan) => this.#isStale(plan));
    const same = rest.filter((plan) => !this.#isStale(plan));
    for (const { due: row, recheckMs } of same) {
      await queue.unchanged(row, recheckMs);
      this.#options.onResult('unchanged');
    }
    await atOnce(AT_ONCE, changed, (plan) => this.#write(queue, plan, 'written'));
    await atOnce(AT_ONCE, stale.slice(0, REFRESHES), (plan) => this.#write(queue, plan, 'refreshed'));
  }

  /** Builds what is due and keeps its conditions. Rows without a Node in Kubernetes leave the queue. */
  async #plan(queue: ReportQueue, due: readonly Due[]): Promise<Planned[]> {
    const rows = await queue.read(due.map(({ node_id }) => node_id));
    const planned: Planned[] = [];
    for (const item of due) {
      const row = rows.get(item.node_id);
      const node = this.#nodes.get(item.node);
      if (row === undefined || node === undefined) {
        await queue.drop(item);
        this.#options.onResult('no_node');
      } else {
        planned.push(this.#build(item, row, node));
      }
    }
    await queue.keepConditions(planned.map(({ row, status }) => ({ row, conditions: status.conditions })));
    return planned;
  }

  #build(due: Due, row: EvidenceRow, node: KubeNode): Planned {
    const { podNames = true, ingestUpToDate = () => true } = this.#options;
    const status = buildStatus(row, { podNames, ingestUpToDate: ingestUpToDate() });
    return {
      due,
      row,
      node,
      status,
      digest: digestOf(status),
      recheckMs: recheckAfter(row, status, this.#pace.refreshMs),
    };
  }

  #isChanged({ row, digest, node }: Planned): boolean {
    return row.status_digest !== digest || !this.#inventory.has(row.node, node);
  }

  #isStale({ row }: Planned): boolean {
    return row.written_at === null || row.now.getTime() - row.written_at.getTime() >= this.#pace.refreshMs;
  }

  async #write(queue: ReportQueue, plan: Planned, result: 'written' | 'refreshed'): Promise<void> {
    const { kube, log, onResult } = this.#options;
    const { row, node, due } = plan;
    const { signal } = this.#loop;
    await sleep(this.#writeLimit.reserve(monoNow()) / 1000, signal);
    signal.throwIfAborted();
    try {
      await this.#removeOrphan(row.node);
      const { uid, creationTimestamp } = await putReport(kube, row.node, node, plan.status, signal);
      this.#inventory.put(row.node, uid, node);
      await queue.written(due, creationTimestamp, plan.digest, plan.recheckMs);
      onResult(result);
    } catch (error) {
      const waitMs = waitForOne(error);
      if (waitMs === null) {
        if (isServersFailure(error)) await queue.defer(due, FAILED_WAIT_MS);
        throw error;
      }
      onResult(waitMs === CONFLICT_WAIT_MS ? 'conflict' : 'refused');
      log.warn({ node: row.node, error: messageOf(error), waitMs }, 'a report was not written');
      await queue.defer(due, waitMs);
    }
  }
}

const isServersFailure = (error: unknown): boolean => error instanceof KubeStatusError && error.code >= 500;

/** How long one report waits after this error; null when the error is not about this report but about all. */
function waitForOne(error: unknown): number | null {
  if (!(error instanceof KubeStatusError)) return null;
  if (error.code === 409) return CONFLICT_WAIT_MS;
  return error.code === 400 || error.code === 413 || error.code === 422 ? REFUSED_WAIT_MS : null;
}

/** Does the work for every item, so many at once. Throws the first error after those under way have ended. */
async function atOnce<T>(most: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const one = async () => {
    try {
      for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
    } catch (error) {
      left.length = 0;
      throw error;
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(most, items.length) }, one));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}
