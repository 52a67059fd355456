/*
 * The controller: stores batches from Redis in Postgres, and keeps one PLEGReport per Node. Of several controllers, all store and one, the
 * leader, does the rest.
 *
 * At its start it checks Redis, Postgres and the API server once, and ends if a setting is wrong. Later failures do not end it: it retries,
 * and /readyz and the log show the error. Only a database that is migrated to a schema it cannot use does. If it ends because of an error,
 * reports say that the present is unknown, unless another controller leads. When stopped, it finishes or
 * returns its jobs, finishes the report pass, and closes.
 */

import { createKubeClient, type KubeClient } from '../kube/client.ts';
import { KubeStatusError } from '../kube/kubeErrors.ts';
import { NODES } from '../kube/object.ts';
import { type CleanUp, runCleanUps } from '../platform/cleanUps.ts';
import { errorFields, PlegwatchError } from '../platform/errors.ts';
import { type HttpServer, serveHttp } from '../platform/http.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { VERSION } from '../platform/version.ts';
import { checkRedis } from '../redis/check.ts';
import { openStore } from '../store/store.ts';
import { startClusterIdentity } from './clusterIdentity.ts';
import { CONTROLLER_SETTINGS, type ControllerConfig, checkCombination } from './config.ts';
import { type StoreFigures, startFigures } from './figures.ts';
import { type Ingest, startIngest } from './ingest/ingest.ts';
import { loadControllerKeys } from './keys/controllerKeys.ts';
import type { AttributionOptions } from './keys/startKeys.ts';
import { type Leading, reportFailure, startLeading } from './leader/leading.ts';
import { ControllerMetrics } from './metrics.ts';
import type { ReportWriter } from './reports/writer.ts';
import { createWatchEnqueuer } from './statusLag/watchEnqueue.ts';
import type { WatchKind } from './statusLag/watchLimits.ts';

/** Runs until the signal is aborted. Throws PlegwatchError if a setting is wrong. */
export async function runController(config: ControllerConfig, signal: AbortSignal): Promise<void> {
  const log = createLogger(config.logLevel, 'controller').child({ cluster: config.cluster });
  log.info(
    { version: VERSION, settings: withoutSecrets(config, CONTROLLER_SETTINGS) },
    'controller starting',
  );
  checkCombination(config);
  try {
    await runParts(config, log, signal);
  } catch (error) {
    log.error(errorFields(error), 'the controller cannot work');
    await reportFailure(config, log, signal).catch((failure: unknown) =>
      log.warn(errorFields(failure), 'reports may show what is no longer so'),
    );
    throw error;
  }
}

/** When it returns or throws, all parts have ended, and the Lease is released. */
async function runParts(config: ControllerConfig, log: Logger, signal: AbortSignal): Promise<void> {
  const metrics = new ControllerMetrics();
  const cleanUps: CleanUp[] = [];
  const incompatible = new AbortController();
  try {
    await checkRedis(config);
    const store = await openStore({ ...config, log });
    cleanUps.push(() => store.close());
    const kube = config.noKube ? null : await connectKube(config, log, cleanUps);
    if (kube !== null) {
      const identity = await startClusterIdentity({
        store,
        kube,
        cluster: config.cluster,
        log,
        onUnknown: () => metrics.clusterIdentityUnknown.inc(),
        onRefused: (error) => incompatible.abort(error),
      });
      cleanUps.push(() => identity.stop());
    }
    const measuresStatusLag = config.statusLag === 'on' && !config.noKube;
    const { statusLagReadsPerSecond: readsPerSecond } = config;
    const onShed = (kind: WatchKind, count: number) => metrics.statusLagShed.inc({ kind }, count);
    let leading: Leading | null = null;
    const reportWriter = () => leading?.reportWriter() ?? null;
    const ingest = await startIngest({
      ...config,
      store,
      intervals: config,
      log,
      metrics,
      onIncompatible: (error) => incompatible.abort(error),
      attribution: await attributionOf(config, cleanUps),
      watches: measuresStatusLag ? createWatchEnqueuer({ readsPerSecond, onShed }) : undefined,
    });
    cleanUps.push(() => ingest.stop());
    if (kube === null) {
      const onRead = (read: StoreFigures | null) => metrics.setFigures(read, false);
      const silentAfterMs = config.intervalSilence / 1000;
      const figures = startFigures({ store, cluster: config.cluster, silentAfterMs, log, onRead });
      cleanUps.push(() => figures.stop());
    } else {
      leading = startLeading({ config, store, kube, ingest, metrics, log });
      cleanUps.push(leading.stop);
    }
    const http = await serve(config, ingest, reportWriter, metrics);
    cleanUps.push(() => http.stop());
    log.info({ port: http.port, reports: kube !== null }, 'controller ready');
    await aborted(AbortSignal.any([signal, incompatible.signal]));
    incompatible.signal.throwIfAborted();
    log.info('controller stopping');
  } finally {
    await runCleanUps(cleanUps, log);
  }
}

/** Whether agents can enrol depends on the API server, which reviews their tokens. */
async function attributionOf(
  { attribution: mode, agentServiceAccount: account, keySecret, kubeconfig }: ControllerConfig,
  cleanUps: CleanUp[],
): Promise<AttributionOptions> {
  if (account === undefined || keySecret === undefined) return { mode };
  const kube = await createKubeClient({ kubeconfig });
  cleanUps.push(() => kube.close());
  const places = {
    name: keySecret.name,
    secretNamespace: keySecret.namespace,
    configMapNamespace: account.namespace,
  };
  return { mode, enrolment: { kube, account, loadKeys: () => loadControllerKeys(kube, places) } };
}

async function connectKube(
  { kubeconfig }: ControllerConfig,
  log: Logger,
  cleanUps: CleanUp[],
): Promise<KubeClient> {
  const kube = await createKubeClient({ kubeconfig });
  cleanUps.push(() => kube.close());
  await kube.list(NODES, { limit: 1 }).catch(unlessTemporary(log));
  return kube;
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
  reportWriter: () => ReportWriter | null,
  metrics: ControllerMetrics,
): Promise<HttpServer> {
  return serveHttp({
    address: config.httpAddress,
    metrics: () => metrics.registry.metrics(),
    live: () => ({
      ingest: () => {
        const { alive, stalledForMs } = ingest.health();
        return alive ? null : `no job was finished for ${Math.round(stalledForMs / 1000)} s`;
      },
      reports: () => reportWriter()?.alive() ?? null,
    }),
    ready: () => ({
      database: () => (ingest.health().database ? null : 'Postgres does not answer'),
      redis: () => ingest.redisError(),
      reports: () => reportWriter()?.health() ?? null,
    }),
  });
}
