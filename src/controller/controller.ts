/*
 * The controller: stores batches from Redis in Postgres, and keeps one PLEGReport per Node.
 *
 * At its start it checks Redis, Postgres and the API server once, and ends if a setting is wrong. Later failures do not end it: it retries,
 * and /readyz and the log show the error. When stopped, it finishes or returns its jobs, finishes the report pass, and closes.
 */
import { PlegwatchError } from '../platform/errors.ts';
import { type HttpServer, serveHttp } from '../platform/http.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { checkRedis } from '../platform/redisCheck.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { VERSION } from '../platform/version.ts';
import { CONTROLLER_SETTINGS, type ControllerConfig } from './config.ts';
import { type Ingest, startIngest } from './ingest/ingest.ts';
import { createKubeClient } from './kube/client.ts';
import { KubeStatusError } from './kube/kubeErrors.ts';
import { startNodeWatch } from './kube/nodes.ts';
import { NODES } from './kube/object.ts';
import { ControllerMetrics } from './metrics.ts';
import { startConditionRecorder } from './nodeConditions/recorder.ts';
import { type ReportWriter, startReportWriter } from './reports/writer.ts';
import type { WatchKind } from './statusLag/metrics.ts';
import { PodPoller } from './statusLag/podPoller.ts';
import { createWatchEnqueuer } from './statusLag/watchEnqueue.ts';
import { openStore, type Store } from './store/store.ts';

/** Runs until the signal is aborted. Throws PlegwatchError if a setting is wrong. */
export async function runController(config: ControllerConfig, signal: AbortSignal): Promise<void> {
  const log = createLogger(config.logLevel, 'controller').child({ cluster: config.cluster });
  log.info(
    { version: VERSION, settings: withoutSecrets(config, CONTROLLER_SETTINGS) },
    'controller starting',
  );
  const metrics = new ControllerMetrics();
  const cleanUps: (() => Promise<void> | void)[] = [];
  try {
    await checkRedis(config.redisUrl);
    const store = await openStore({ databaseUrl: config.databaseUrl, log });
    cleanUps.push(() => store.close());
    const measuresStatusLag = config.statusLag === 'on' && !config.noKube;
    const { statusLagReadsPerSecond: readsPerSecond } = config;
    const onShed = (kind: WatchKind, count: number) => metrics.statusLagShed.inc({ kind }, count);
    const ingest = await startIngest({
      store,
      redisUrl: config.redisUrl,
      cluster: config.cluster,
      intervals: config,
      log,
      metrics,
      watches: measuresStatusLag ? createWatchEnqueuer({ readsPerSecond, onShed }) : undefined,
    });
    cleanUps.push(() => ingest.stop());
    const reportWriter = config.noKube
      ? null
      : await startReports(config, { store, ingest, metrics, log }, cleanUps);
    const http = await serve(config, ingest, reportWriter, metrics);
    cleanUps.push(() => http.stop());
    log.info({ port: http.port, reports: reportWriter !== null }, 'controller ready');
    await aborted(signal);
    log.info('controller stopping');
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

interface ControllerParts {
  readonly store: Store;
  readonly ingest: Ingest;
  readonly metrics: ControllerMetrics;
  readonly log: Logger;
}

async function startReports(
  config: ControllerConfig,
  { store, ingest, metrics, log }: ControllerParts,
  cleanUps: (() => Promise<void> | void)[],
): Promise<ReportWriter> {
  const kube = await createKubeClient({ kubeconfig: config.kubeconfig });
  cleanUps.push(() => kube.close());
  await kube.list(NODES, { limit: 1 }).catch(unlessTemporary(log));
  const nodes = startNodeWatch({ kube, log, onMissed: () => metrics.nodeWatchMissed.inc() });
  cleanUps.push(() => nodes.stop());
  const recorder = startConditionRecorder({
    store,
    cluster: config.cluster,
    nodes,
    log,
    onRecorded: () => metrics.nodeConditions.inc(),
  });
  cleanUps.push(() => recorder.stop());
  const silentAfterMs = config.intervalSilence / 1000;
  const reportWriter = startReportWriter({
    store,
    kube,
    nodes,
    cluster: config.cluster,
    log,
    onResult: (result) => metrics.reportWrites.inc({ result }),
    silentAfterMs,
    ingestUpToDate: () => ingest.health().caughtUpForMs >= silentAfterMs,
  });
  cleanUps.push(() => reportWriter.stop());
  if (config.statusLag === 'on') {
    const podPoller = new PodPoller({
      store,
      kube,
      cluster: config.cluster,
      readsPerSecond: config.statusLagReadsPerSecond,
      log,
      metrics: {
        read: (result) => metrics.statusLagReads.inc({ result }),
        watches: ({ overdue, samples }) => {
          metrics.statusLagWatches.set({ kind: 'overdue' }, overdue);
          metrics.statusLagWatches.set({ kind: 'sample' }, samples);
        },
        shed: (kind, count) => metrics.statusLagShed.inc({ kind }, count),
      },
    });
    cleanUps.push(() => podPoller.stop());
  }
  // There is no election: the one controller that has an API server leads.
  metrics.leader.set(1);
  return reportWriter;
}

/** Rethrows wrong credentials; a server that is failing or starting is retried later. */
function unlessTemporary(log: Logger): (error: unknown) => void {
  return (error) => {
    if (error instanceof PlegwatchError) throw error;
    if (!(error instanceof KubeStatusError)) throw error;
    log.warn({ error: error.message }, 'the API server is not ready yet');
  };
}

function serve(
  config: ControllerConfig,
  ingest: Ingest,
  reportWriter: ReportWriter | null,
  metrics: ControllerMetrics,
): Promise<HttpServer> {
  return serveHttp({
    address: config.httpAddress,
    metrics: () => metrics.registry.metrics(),
    live: {
      ingest: () => {
        const { alive, stalledForMs } = ingest.health();
        return alive ? null : `no job was finished for ${Math.round(stalledForMs / 1000)} s`;
      },
      reports: () => reportWriter?.alive() ?? null,
    },
    ready: {
      database: () => (ingest.health().database ? null : 'Postgres does not answer'),
      redis: () => ingest.redisError(),
      reports: () => reportWriter?.health() ?? null,
    },
  });
}
