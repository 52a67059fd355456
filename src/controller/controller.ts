/*
 * The controller: stores batches from Redis in Postgres, and keeps one PLEGReport per Node. All controllers store, and one of them, the leader, does
 * the rest.
 *
 * At its start it checks Redis, Postgres and the API server, and ends if a setting is wrong. It waits for a Redis or a Postgres that is away: longer
 * than the ten minutes after which Kubernetes restarts a container that ends without a growing pause. Later failures do not end it: it retries,
 * and /readyz and the log show the error. Only a database that is migrated to a schema it cannot use does. While it waits, and if it ends because of
 * an error, reports say that the present is unknown, unless another controller leads. When stopped, it finishes or
 * returns its jobs, finishes the report pass, and closes.
 */

import { createKubeClient, type KubeClient } from '../kube/client.ts';
import { KubeStatusError } from '../kube/kubeErrors.ts';
import { NODES } from '../kube/object.ts';
import { type CleanUp, runCleanUps } from '../platform/cleanUps.ts';
import { type ErrorCode, errorFields, messageOf, PlegwatchError } from '../platform/errors.ts';
import { type HttpServer, serveHttp } from '../platform/http.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import { untilReachable } from '../platform/untilReachable.ts';
import { VERSION } from '../platform/version.ts';
import { checkRedis } from '../redis/check.ts';
import { openStore, type Store } from '../store/store.ts';
import { startClusterIdentity } from './clusterIdentity.ts';
import { CONTROLLER_SETTINGS, type ControllerConfig, checkCombination } from './config.ts';
import { type StoreFigures, startFigures } from './figures.ts';
import { type Ingest, startIngest } from './ingest/ingest.ts';
import { loadControllerKeys } from './keys/controllerKeys.ts';
import type { AttributionOptions } from './keys/startKeys.ts';
import { type Leading, reportFailure, startLeading, startStandIn } from './leader/leading.ts';
import { ControllerMetrics } from './metrics.ts';
import type { ReportWriter } from './reports/writer.ts';
import { createWatchEnqueuer } from './statusLag/watchEnqueue.ts';
import type { WatchKind } from './statusLag/watchLimits.ts';

/** Errors that end when a service is back. */
const AWAY: readonly ErrorCode[] = ['REDIS_UNREACHABLE', 'DATABASE_UNREACHABLE'];

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
  const served = new ControllerServer(config, metrics);
  cleanUps.push(() => served.stop());
  try {
    const store = await openServices(config, log, served, signal);
    if (store === null) return;
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
    const port = await served.run({ ingest, reportWriter: () => leading?.reportWriter() ?? null });
    log.info({ port, reports: kube !== null }, 'controller ready');
    await aborted(AbortSignal.any([signal, incompatible.signal]));
    incompatible.signal.throwIfAborted();
    log.info('controller stopping');
  } finally {
    await runCleanUps(cleanUps, log);
  }
}

/** Waits for a Redis or a Postgres that is away. Meanwhile the controller is alive and not ready. Null if it is stopped then. */
async function openServices(
  config: ControllerConfig,
  log: Logger,
  served: ControllerServer,
  signal: AbortSignal,
): Promise<Store | null> {
  const throttled = new ThrottledLog(log, { linesPerMinute: 1 });
  let waits = false;
  let standIn: Awaited<ReturnType<typeof startStandIn>> | undefined;
  try {
    return await untilReachable(
      async () => {
        if (waits) {
          await served.listen();
          standIn ??= await startStandIn(config, log);
        }
        await checkRedis(config);
        return openStore({ ...config, log });
      },
      {
        ...{ codes: AWAY, wait: config.intervalStart, signal },
        onWait(error) {
          throttled.warn(errorFields(error), 'the controller waits for a service that it needs');
          served.waitsFor = messageOf(error);
          waits = true;
        },
      },
    );
  } catch (error) {
    if (waits && signal.aborted) return null;
    throw error;
  } finally {
    await standIn?.stop();
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

interface RunningParts {
  readonly ingest: Pick<Ingest, 'health' | 'redisError'>;
  readonly reportWriter: () => ReportWriter | null;
}

/** The HTTP server, from the first wait for a service on, or from when all parts run. */
class ControllerServer {
  readonly #config: ControllerConfig;
  readonly #metrics: ControllerMetrics;
  #http: HttpServer | null = null;
  #parts: RunningParts | null = null;
  waitsFor = 'the controller is starting';

  constructor(config: ControllerConfig, metrics: ControllerMetrics) {
    this.#config = config;
    this.#metrics = metrics;
  }

  /** Returns the port. */
  async listen(): Promise<number> {
    this.#http ??= await serveHttp({
      address: this.#config.httpAddress,
      metrics: () => this.#metrics.registry.metrics(),
      live: () => (this.#parts === null ? {} : liveChecks(this.#parts)),
      ready: () => (this.#parts === null ? { start: () => this.waitsFor } : readyChecks(this.#parts)),
    });
    return this.#http.port;
  }

  /** Returns the port. */
  run(parts: RunningParts): Promise<number> {
    this.#parts = parts;
    return this.listen();
  }

  async stop(): Promise<void> {
    await this.#http?.stop();
  }
}

const liveChecks = ({ ingest, reportWriter }: RunningParts) => ({
  ingest() {
    const { alive, stalledForMs } = ingest.health();
    return alive ? null : `no job was finished for ${Math.round(stalledForMs / 1000)} s`;
  },
  reports: () => reportWriter()?.alive() ?? null,
});

const readyChecks = ({ ingest, reportWriter }: RunningParts) => ({
  database: () => (ingest.health().database ? null : 'Postgres does not answer'),
  redis: () => ingest.redisError(),
  reports: () => reportWriter()?.health() ?? null,
});
