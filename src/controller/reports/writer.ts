/*
 * The report writer keeps one PLEGReport for each Node of the cluster. Only the leader runs it.
 *
 *   due       a row of the queue: ingest adds it when evidence changes, enqueueStaleReports.sql when only time has passed, and
 *             enqueueRewrites.sql for a Node without a report, whether or not it has an agent
 *   changed   the digest of the status differs from the one last written; otherwise a due report is at most refreshed
 *
 * Each pass deletes reports without a Node, then reads, builds and, if they changed, writes the due ones. A row leaves the queue when its
 * report is written, unless it became due again meanwhile; while the API server is unavailable rows stay in the queue. A node that was just
 * written waits, so that a burst of changes is one write.
 */

import type { KubeClient } from '../../kube/client.ts';
import { KubeStatusError, retryAfterMs } from '../../kube/kubeErrors.ts';
import { listWatch } from '../../kube/listWatch.ts';
import { PLEG_REPORTS } from '../../kube/object.ts';
import type { KubeNode } from '../../kube/projection.ts';
import type { BackoffOptions } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { errorFields, messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { forEachConcurrent } from '../../platform/permits.ts';
import { sleep } from '../../platform/sleep.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import { between, type Mono, mono } from '../../protocol/units.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { Store } from '../../store/store.ts';
import type { NodeWatch } from '../nodes/nodeWatch.ts';
import { buildStatus, digestOf, recheckAfter } from './build.ts';
import { maxAnswerMs, SILENT_AFTER_MS } from './conditions.ts';
import type { EvidenceRow } from './evidence.ts';
import { NodeReports } from './nodeReports.ts';
import { type BuiltReport, ReportQueue } from './queue.ts';
import type { DueReport } from './statements.ts';
import type { ReportCondition } from './status.ts';

/** The results of a report that was due. */
export const REPORT_RESULTS = [
  'written',
  'refreshed',
  'unchanged',
  'deleted',
  'no_node',
  'conflict',
  'refused',
] as const;

type ReportResult = (typeof REPORT_RESULTS)[number];

export interface ReportWriterOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  readonly kube: KubeClient;
  readonly nodes: NodeWatch;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly log: Logger;
  /** The keys of the labels that reports have from their Nodes. Default: none. */
  readonly labelKeys?: readonly string[];
  /** Called with the result of each report that was due. */
  readonly onResult: (result: ReportResult) => void;
  /** Called with the conditions of each report that was built, and the Node that they are about. */
  readonly onBuilt?: (name: string, node: KubeNode, conditions: readonly ReportCondition[]) => void;
  /** An agent without a stored batch for longer than this is silent. Default: {@link SILENT_AFTER_MS}. */
  readonly silentAfterMs?: number;
  /** For how long everything that agents sent was stored at once. Default: always. */
  readonly ingestCaughtUpForMs?: () => number;
  /** Default: {@link monoNow}. */
  readonly clock?: () => Mono;
  /** For tests. */
  readonly pace?: Partial<ReportPace>;
}

export interface ReportPace {
  /** Time between two passes while nothing changes. */
  readonly pollMs: number;
  /** Minimum time between two writes of a report. */
  readonly minIntervalMs: number;
  readonly writesPerSecond: number;
  /** How often reports are queued that may have changed with time alone. */
  readonly staleCheckMs: number;
  /** An unchanged report is written again after this time, or later if that would be more than `refreshesPerSecond` of all. */
  readonly refreshMs: number;
  readonly refreshesPerSecond: number;
  /** How long the first report of a Node waits for an agent: most agents start soon after their Node, and one write is enough. */
  readonly firstAgentMs: number;
  readonly backoff: BackoffOptions;
}

const DEFAULTS = {
  silentAfterMs: SILENT_AFTER_MS,
  ingestCaughtUpForMs: () => Number.POSITIVE_INFINITY,
  clock: monoNow,
};
const DEFAULT_PACE: ReportPace = {
  pollMs: 500,
  minIntervalMs: 10_000,
  writesPerSecond: 20,
  staleCheckMs: 10_000,
  refreshMs: 300_000,
  refreshesPerSecond: 4,
  firstAgentMs: 30_000,
  backoff: { firstMs: 500, maxMs: 30_000 },
};
/** Reports per pass: a second of writes, because what becomes due meanwhile waits for the next pass, however much it matters. */
const MAX_PER_PASS = 20;
const MAX_CONCURRENT_WRITES = 4;
const STALLED_AFTER_MS = 300_000;
const CONFLICT_WAIT_MS = 1_000;
/** After a server error for one report, others go first: it may be the only one that fails. */
const SERVER_ERROR_WAIT_MS = 5_000;
const REFUSED_WAIT_MS = 300_000;
const NEVER = mono(Number.NEGATIVE_INFINITY);

/** How old an unchanged report becomes, of so many. */
export const refreshAfterMs = (
  reports: number,
  { refreshMs, refreshesPerSecond }: Pick<ReportPace, 'refreshMs' | 'refreshesPerSecond'> = DEFAULT_PACE,
): number => Math.max(refreshMs, (reports / refreshesPerSecond) * 1_000);

interface PlannedReport extends BuiltReport {
  readonly due: DueReport;
  readonly row: EvidenceRow;
  readonly node: KubeNode;
}

/** Starts a writer that runs until it is stopped, and survives every failure. */
export function startReportWriter(options: ReportWriterOptions): ReportWriter {
  const writer = new ReportWriter(options);
  writer.start();
  return writer;
}

export class ReportWriter {
  readonly #options: ReportWriterOptions & typeof DEFAULTS;
  readonly #pace: ReportPace;
  readonly #reports: NodeReports;
  readonly #writeLimit: TokenBucket;
  readonly #loop: Loop;
  #queue: ReportQueue | undefined;
  readonly #stopWatching = new AbortController();
  #watching: Promise<void> | null = null;
  #reportsListed = false;
  /** Why the last request of the watch of reports failed; null if it did not. */
  #watchError: string | null = null;
  #staleCheckedAt = NEVER;
  readonly #startedAt: Mono;
  #passEndedAt: Mono;
  /** Why the last pass failed; null if it did not. */
  #error: string | null = null;

  constructor(options: ReportWriterOptions) {
    const { kube, nodes, log, labelKeys = [], onResult } = options;
    this.#options = { ...DEFAULTS, ...options };
    this.#pace = { ...DEFAULT_PACE, ...options.pace };
    this.#startedAt = this.#options.clock();
    this.#passEndedAt = this.#startedAt;
    const { writesPerSecond } = this.#pace;
    this.#writeLimit = new TokenBucket({ capacity: writesPerSecond, interval: perSecond(writesPerSecond) });
    this.#reports = new NodeReports({
      kube,
      nodes,
      labelKeys,
      firstAgentMs: this.#pace.firstAgentMs,
      onDeleted: (name) => {
        onResult('deleted');
        log.info({ node: name }, 'report of a deleted Node removed');
      },
    });
    this.#loop = new Loop({
      work: () => this.#work(),
      onError: (error, waitMs) => this.#failed(error, waitMs),
      backoff: this.#pace.backoff,
      minWaitMs: retryAfterMs,
    });
    nodes.onChange((name) => {
      this.#reports.noteChange(name);
      this.#loop.wake();
    });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#stopWatching.abort();
    await Promise.all([this.#loop.stop(), this.#watching]);
  }

  #watchReports(): Promise<void> {
    const { kube, log } = this.#options;
    return listWatch({
      kube,
      resource: PLEG_REPORTS,
      log,
      signal: this.#stopWatching.signal,
      project: (object) => this.#reports.project(object),
      onList: (reports) => {
        this.#reports.replaceAll(reports);
        this.#reportsListed = true;
        this.#loop.wake();
      },
      onEvent: (event) => {
        if (this.#reports.apply(event)) this.#loop.wake();
      },
      onProgress: () => {
        this.#watchError = null;
      },
      onFailure: (message) => {
        this.#watchError = message;
      },
      backoff: this.#pace.backoff,
    });
  }

  /** Why the writer is not ready; null if it is. */
  health(): string | null {
    const { nodes } = this.#options;
    if (!nodes.synced) return nodes.error ?? 'the Nodes are not listed yet';
    if (!this.#reportsListed) return this.#watchError ?? 'the reports are not listed yet';
    return this.#error ?? nodes.error ?? this.#watchError;
  }

  /** Why the writer is not alive; null while passes end, successfully or not. */
  alive(): string | null {
    const stalledMs = this.#msSince(this.#passEndedAt);
    return stalledMs < STALLED_AFTER_MS
      ? null
      : `no report pass has ended for ${Math.round(stalledMs / 1000)} s`;
  }

  async #work(): Promise<number> {
    try {
      const foundAny = await this.#pass();
      this.#error = null;
      return foundAny ? 0 : this.#pace.pollMs;
    } finally {
      this.#passEndedAt = this.#options.clock();
    }
  }

  #failed(error: unknown, waitMs: number): void {
    this.#error = messageOf(error);
    this.#options.log.warn({ ...errorFields(error), waitMs }, 'writing reports failed, retrying');
  }

  /** Returns whether a report was due: more may be. */
  async #pass(): Promise<boolean> {
    const { store, cluster, nodes } = this.#options;
    const { signal } = this.#loop;
    if (!nodes.synced) return false;
    this.#watching ??= this.#watchReports();
    if (!this.#reportsListed) return false;
    this.#queue ??= new ReportQueue(store, await store.ensureCluster(cluster));
    const queue = this.#queue;
    await this.#reports.reconcile(queue, signal);
    if (this.#msSince(this.#staleCheckedAt) >= this.#pace.staleCheckMs && this.#knowsSilence()) {
      await queue.enqueueStale(this.#options.silentAfterMs);
      this.#staleCheckedAt = this.#options.clock();
    }
    const due = await queue.due(this.#pace.minIntervalMs, MAX_PER_PASS);
    if (due.length > 0) await this.#process(queue, due);
    return due.length > 0;
  }

  #msSince(at: Mono): number {
    return between(at, this.#options.clock()) / 1000;
  }

  /**
   * Whether an agent without a new batch is silent. At the start it is not known, because batches may wait: without this, every report of a
   * restarted controller would be written twice.
   */
  #knowsSilence(): boolean {
    const { ingestCaughtUpForMs, silentAfterMs } = this.#options;
    return Math.max(this.#msSince(this.#startedAt), ingestCaughtUpForMs()) >= maxAnswerMs(silentAfterMs);
  }

  async #process(queue: ReportQueue, due: readonly DueReport[]): Promise<void> {
    const planned = await this.#plan(queue, due);
    const changed = planned.filter((plan) => this.#isChanged(plan));
    const unchanged = planned.filter((plan) => !this.#isChanged(plan));
    const current = unchanged.filter((plan) => !this.#isOld(plan));
    await queue.finishUnchanged(current);
    for (const _ of current) this.#options.onResult('unchanged');
    const refreshed = unchanged.filter((plan) => this.#isOld(plan));
    await forEachConcurrent(MAX_CONCURRENT_WRITES, changed, (plan) => this.#write(queue, plan, 'written'));
    await forEachConcurrent(MAX_CONCURRENT_WRITES, refreshed, (plan) =>
      this.#write(queue, plan, 'refreshed'),
    );
  }

  /** Builds the due reports and stores their conditions. Removes rows without a Node from the queue. */
  async #plan(queue: ReportQueue, due: readonly DueReport[]): Promise<PlannedReport[]> {
    const rows = await queue.read(due.map(({ node_id }) => node_id));
    const planned: PlannedReport[] = [];
    for (const item of due) {
      const row = rows.get(item.node_id);
      const node = this.#options.nodes.get(item.node);
      if (row === undefined || node === undefined) {
        await queue.remove(item);
        this.#options.onResult('no_node');
      } else {
        planned.push(this.#build(item, row, node));
      }
    }
    await queue.storeConditions(planned.map(({ row, status }) => ({ row, conditions: status.conditions })));
    for (const { row, node, status } of planned) this.#options.onBuilt?.(row.node, node, status.conditions);
    return planned;
  }

  #build(due: DueReport, row: EvidenceRow, node: KubeNode): PlannedReport {
    const { silentAfterMs } = this.#options;
    const status = buildStatus(row, { silentAfterMs, labels: node.labels });
    return {
      due,
      row,
      node,
      status,
      digest: digestOf(status),
      recheckMs: recheckAfter(row, status, this.#refreshMs()),
    };
  }

  #refreshMs(): number {
    return refreshAfterMs([...this.#options.nodes.names()].length, this.#pace);
  }

  #isChanged({ row, digest, node }: PlannedReport): boolean {
    return row.status_digest !== digest || !this.#reports.exists(row.node, node);
  }

  #isOld({ row }: PlannedReport): boolean {
    if (row.written_at === null) return true;
    return Date.parse(row.now) - Date.parse(row.written_at) >= this.#refreshMs();
  }

  async #write(queue: ReportQueue, plan: PlannedReport, result: 'written' | 'refreshed'): Promise<void> {
    const { log, onResult } = this.#options;
    const { row, node, due, status } = plan;
    const { signal } = this.#loop;
    await sleep(this.#writeLimit.reserve(this.#options.clock()) / 1000, signal);
    signal.throwIfAborted();
    try {
      const createdAt = await this.#reports.write(row.node, node, status, signal);
      await queue.finishWritten(due, createdAt, plan);
      onResult(result);
    } catch (error) {
      const waitMs = waitOfReport(error);
      if (waitMs === null) {
        if (isServerError(error)) await queue.defer(due, SERVER_ERROR_WAIT_MS);
        throw error;
      }
      onResult(waitMs === CONFLICT_WAIT_MS ? 'conflict' : 'refused');
      log.warn({ node: row.node, error: messageOf(error), waitMs }, 'report not written, retrying');
      await queue.defer(due, waitMs);
    }
  }
}

const isServerError = (error: unknown): boolean => error instanceof KubeStatusError && error.code >= 500;

/** How long this one report waits after the error; null if the error concerns all reports. */
function waitOfReport(error: unknown): number | null {
  if (!(error instanceof KubeStatusError)) return null;
  if (error.code === 409) return CONFLICT_WAIT_MS;
  return error.code === 400 || error.code === 413 || error.code === 422 ? REFUSED_WAIT_MS : null;
}
