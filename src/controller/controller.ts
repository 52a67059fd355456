/*
 * The controller: takes batches from Redis into Postgres, and keeps one PLEGReport per Node.
 *
 * Start: settings are checked against the real parts once, and what is wrong is told at once. After that nothing ends it:
 * whatever goes away is tried again, and shows in /readyz and the log meanwhile. Stop: finish or give back the jobs at
 * hand, end the report round, close.
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
import { type ControllerMetrics, createControllerMetrics } from './metrics.ts';
import { startConditionRecorder } from './nodeConditions/recorder.ts';
import { SILENT_AFTER_MS } from './reports/conditions.ts';
import { type ReportWriter, startReportWriter } from './reports/writer.ts';
import type { WatchKind } from './statusLag/metrics.ts';
import { startPodReader } from './statusLag/podPoller.ts';
import { createWatchEnqueuer } from './statusLag/watchEnqueue.ts';
import { openStore, type Store } from './store/store.ts';

/** Runs until the signal is aborted. Throws PlegwatchError where a setting does not lead to what it should. */
export async function runController(config: ControllerConfig, signal: AbortSignal): Promise<void> {
  const log = createLogger(config.logLevel, 'controller').child({ cluster: config.cluster });
  log.info(
    { version: VERSION, settings: withoutSecrets(config, CONTROLLER_SETTINGS) },
    'controller starting',
  );
  const metrics = createControllerMetrics();
  const cleanUps: (() => Promise<void> | void)[] = [];
  try {
    await checkRedis(config.redisUrl);
    const store = await openStore({ databaseUrl: config.databaseUrl, log });
    cleanUps.push(() => store.close());
    const measured = config.statusLag === 'on' && !config.noKube;
    const { statusLagReadsPerSecond: readsPerSecond } = config;
    const onShed = (kind: WatchKind, count: number) => metrics.statusLagShed.inc({ kind }, count);
    const ingest = await startIngest({
      store,
      redisUrl: config.redisUrl,
      cluster: config.cluster,
      intervals: config,
      log,
      metrics,
      watches: measured ? createWatchEnqueuer({ readsPerSecond, onShed }) : undefined,
    });
    cleanUps.push(() => ingest.stop());
    const reportWriter = config.noKube
      ? null
      : await report(config, { store, ingest, metrics, log }, cleanUps);
    const http = await serve(config, ingest, reportWriter, metrics);
    cleanUps.push(() => http.stop());
    log.info({ port: http.port, reports: reportWriter !== null }, 'controller ready');
    await aborted(signal);
    log.info('controller stopping');
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

interface Parts {
  readonly store: Store;
  readonly ingest: Ingest;
  readonly metrics: ControllerMetrics;
  readonly log: Logger;
}

async function report(
  config: ControllerConfig,
  { store, ingest, metrics, log }: Parts,
  cleanUps: (() => Promise<void> | void)[],
): Promise<ReportWriter> {
  const kube = await createKubeClient({ kubeconfig: config.kubeconfig });
  cleanUps.push(() => kube.close());
  await kube.list(NODES, { limit: 1 }).catch(orLater(log));
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
  const reportWriter = startReportWriter({
    store,
    kube,
    nodes,
    cluster: config.cluster,
    log,
    onResult: (result) => metrics.reportWrites.inc({ result }),
    ingestUpToDate: () => ingest.health().caughtUpForMs >= SILENT_AFTER_MS,
  });
  cleanUps.push(() => reportWriter.stop());
  if (config.statusLag === 'on') {
    const pods = startPodReader({
      store,
      kube,
      cluster: config.cluster,
      readsPerSecond: config.statusLagReadsPerSecond,
      log,
      metrics: {
        read: (result) => metrics.statusLagReads.inc({ result }),
        watched: ({ overdue, samples }) => {
          metrics.statusLagWatches.set({ kind: 'overdue' }, overdue);
          metrics.statusLagWatches.set({ kind: 'sample' }, samples);
        },
        shed: (kind, count) => metrics.statusLagShed.inc({ kind }, count),
      },
    });
    cleanUps.push(() => pods.stop());
  }
  // One replica writes reports; it leads alone.
  return reportWriter;
}

/** Wrong credentials end the start; a server that is ill or starting is waited for. */
function orLater(log: Logger): (error: unknown) => void {
  return (error) => {
    if (error instanceof PlegwatchError) throw error;
    if (!(error instanceof KubeStatusError)) throw error;
    log.warn({ error: error.message }, 'the API server is not well yet');
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
