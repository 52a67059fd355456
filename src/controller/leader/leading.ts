/*
 * The leader's work, when it is this controller's turn: by a Lease, or always. It writes reports and Events, publishes conditions on Nodes if it is
 * to, records Ready conditions and the labels of Nodes, measures status lags, sends records to OpenTelemetry, and reads the figures of the metrics.
 */
import { createKubeClient, type KubeClient } from '../../kube/client.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import type { Store } from '../../store/store.ts';
import type { ControllerConfig } from '../config.ts';
import { startFigures } from '../figures.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { startSignatureRequirement } from '../keys/signatureRequirement.ts';
import { modeWhere } from '../keys/startKeys.ts';
import type { ControllerMetrics } from '../metrics.ts';
import { startConditionPublisher } from '../nodeConditions/publisher.ts';
import { withdrawProblems } from '../nodeConditions/unknown.ts';
import { startConditionRecorder } from '../nodes/conditionRecorder.ts';
import { startEventWriter } from '../nodes/eventWriter.ts';
import { startNodeInfoRecorder } from '../nodes/infoRecorder.ts';
import { startNodeWatch } from '../nodes/nodeWatch.ts';
import { PLEG_HISTORY } from '../nodes/plegHistory.ts';
import { READY_HISTORY } from '../nodes/readyHistory.ts';
import { startOtlpSender } from '../otlp/sender.ts';
import { writeUnknown } from '../reports/unknown.ts';
import { type ReportWriter, startReportWriter } from '../reports/writer.ts';
import { PodPoller } from '../statusLag/podPoller.ts';
import { WATCH_KINDS } from '../statusLag/watchLimits.ts';
import { startElection } from './election.ts';
import { lead } from './leadership.ts';

export interface LeadingOptions {
  readonly config: ControllerConfig;
  readonly store: Store;
  readonly kube: KubeClient;
  readonly ingest: Pick<Ingest, 'health'>;
  readonly metrics: ControllerMetrics;
  readonly log: Logger;
}

export interface Leading {
  /** Null unless this controller leads. */
  reportWriter(): ReportWriter | null;
  stop(): Promise<void>;
}

/** Leads while this controller holds the Lease; without a Lease, always. */
export function startLeading(parts: LeadingOptions): Leading {
  const { config, kube, ingest, metrics, log } = parts;
  let work: LeaderWork | null = null;
  const start = (store: Store, client: KubeClient) => {
    const started = startLeaderWork({ ...parts, store, kube: client });
    work = started;
    return async () => {
      await started.stop();
      work = null;
    };
  };
  const onContested = (isContested: boolean) => metrics.controllerConflict.set(isContested ? 1 : 0);
  const leadership = { ...parts, cluster: config.cluster, start, onContested };
  const reportWriter = () => work?.reportWriter ?? null;
  if (config.lease !== undefined) {
    const election = startElection({
      kube,
      lease: config.lease,
      log,
      isFit: () => ingest.health().database,
      lead: (signal, holds) => lead(leadership, signal, holds),
      whileNobodyLeads: (signal) => sayUnknown(config, kube, log, signal),
    });
    return { reportWriter, stop: () => election.stop() };
  }
  const stopping = new AbortController();
  const led = lead(leadership, stopping.signal, () => true);
  return {
    reportWriter,
    async stop() {
      stopping.abort();
      await led;
    },
  };
}

/** When the store is away for longer than this, reports say that the present is unknown; and how often they are looked at after that. */
const UNKNOWN_AFTER_MS = 20_000;
const UNKNOWN_AGAIN_MS = 300_000;

async function sayUnknown(
  config: ControllerConfig,
  kube: KubeClient,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await sleep(UNKNOWN_AFTER_MS, signal);
  while (!signal.aborted) {
    await withdrawPresent(config, kube, log, signal);
    await sleep(UNKNOWN_AGAIN_MS, signal);
  }
}

/** Withdraws what reports, and Nodes if they have our conditions, say of the present. */
async function withdrawPresent(
  { nodeConditions }: ControllerConfig,
  kube: KubeClient,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const now = () => new Date();
  // Programs act on Nodes, and a large fleet has many reports.
  const results = await Promise.allSettled([
    nodeConditions === 'on' ? withdrawProblems(kube, now, signal) : 0,
    writeUnknown(kube, now, signal),
  ]);
  const [nodes = 0, reports = 0] = results.map((result) =>
    result.status === 'fulfilled' ? result.value : 0,
  );
  if (reports + nodes > 0)
    log.warn({ reports, nodes }, 'no controller can work: reports and Nodes say that the present is unknown');
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/**
 * For a controller that cannot do its work: calls `whileNobodyLeads` while no other controller leads. Null without a Lease, by which that is known, and
 * without an API server.
 */
async function startCandidacy(
  { lease, kubeconfig }: ControllerConfig,
  log: Logger,
  whileNobodyLeads: (kube: KubeClient, vacant: AbortSignal) => Promise<void>,
): Promise<{ stop(): Promise<void> } | null> {
  if (lease === undefined) return null;
  const kube = await createKubeClient({ kubeconfig });
  const election = startElection({
    ...{ kube, lease, log, isFit: () => false, lead: async () => undefined },
    whileNobodyLeads: (vacant) => whileNobodyLeads(kube, vacant),
  });
  return {
    async stop() {
      await election.stop();
      kube.close();
    },
  };
}

/**
 * The stand-in of a controller that waits for a service at its start: reports say after a while that the present is unknown, unless another
 * controller leads.
 */
export const startStandIn = (config: ControllerConfig, log: Logger) =>
  startCandidacy(config, log, (kube, vacant) => sayUnknown(config, kube, log, vacant));

/** Longer than another controller keeps a Lease that it does not renew. */
const FAILING_MS = 30_000;

/**
 * The last act of a controller that ends because of an error: reports say that the present is unknown, unless another controller leads. Resolves when
 * they do, and after half a minute at the latest.
 */
export async function reportFailure(
  config: ControllerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const written = new AbortController();
  const candidacy = await startCandidacy(config, log, async (kube, vacant) => {
    await withdrawPresent(config, kube, log, vacant);
    written.abort();
  });
  if (candidacy === null) return;
  await sleep(FAILING_MS, AbortSignal.any([signal, written.signal]));
  await candidacy.stop();
}

interface LeaderWork {
  readonly reportWriter: ReportWriter;
  /** Resolves when nothing is written any more, and removes the metrics that only a leader has. */
  stop(): Promise<void>;
}

function startLeaderWork({ config, store, kube, ingest, metrics, log }: LeadingOptions): LeaderWork {
  const { cluster, reportLabels: labelKeys = [], nodeLabels: storedLabelKeys } = config;
  const silentAfterMs = config.intervalSilence / 1000;
  const onMissed = () => metrics.nodeWatchMissed.inc();
  const nodes = startNodeWatch({ kube, log, labelKeys, storedLabelKeys, onMissed });
  const onRecorded = () => metrics.nodeConditions.inc();
  const conditions = { store, cluster, nodes, log };
  const recorder = startConditionRecorder({ ...conditions, history: PLEG_HISTORY, onRecorded });
  const readyRecorder = startConditionRecorder({ ...conditions, history: READY_HISTORY });
  const infoRecorder = startNodeInfoRecorder({ store, cluster, nodes, log });
  const publisher =
    config.nodeConditions === 'on'
      ? startConditionPublisher({
          store,
          kube,
          nodes,
          cluster,
          log,
          onResult: (result) => metrics.publishedConditions.inc({ result }),
        })
      : null;
  const reportWriter = startReportWriter({
    store,
    kube,
    nodes,
    cluster,
    log,
    labelKeys,
    onResult: (result) => metrics.reportWrites.inc({ result }),
    onBuilt: (name, { uid }, conditions) => publisher?.note(name, uid, conditions),
    silentAfterMs,
    ingestCaughtUpForMs: () => ingest.health().caughtUpForMs,
  });
  const eventWriter = startEventWriter({
    store,
    kube,
    nodes,
    cluster,
    onPods: config.podEvents === 'on',
    log,
    onResult: (result) => metrics.nodeEvents.inc({ result }),
  });
  const podPoller =
    config.statusLag === 'on'
      ? new PodPoller({
          store,
          kube,
          cluster,
          readsPerSecond: config.statusLagReadsPerSecond,
          log,
          metrics: {
            read: (result) => metrics.statusLagReads.inc({ result }),
            watches: (counts) => {
              for (const kind of WATCH_KINDS) metrics.statusLagWatches.set({ kind }, counts[kind]);
            },
            shed: (kind, count) => metrics.statusLagShed.inc({ kind }, count),
          },
        })
      : null;
  const figures = startFigures({
    store,
    cluster,
    silentAfterMs,
    log,
    onRead: (read) => metrics.setFigures(read, true),
  });
  const signatures = startSignatureRequirement({
    store,
    cluster,
    mode: modeWhere(config.attribution, config.keySecret !== undefined),
    log,
    onRead: (state) => metrics.setSignatures(state),
  });
  const otlpSender = startOtlpSender({
    store,
    cluster,
    endpoint: config.otlpEndpoint,
    log,
    onResult: (result, count) => metrics.otlpRecords.inc({ result }, count),
  });
  metrics.leader.set(1);
  return {
    reportWriter,
    async stop() {
      const parts = [
        recorder,
        readyRecorder,
        infoRecorder,
        reportWriter,
        eventWriter,
        figures,
        signatures,
        otlpSender,
        nodes,
      ];
      await Promise.all([...parts.map((part) => part.stop()), podPoller?.stop(), publisher?.stop()]);
      metrics.leader.set(0);
      metrics.setFigures(null, false);
      metrics.setSignatures(null);
      for (const kind of WATCH_KINDS) metrics.statusLagWatches.set({ kind }, 0);
    },
  };
}
