/*
 * The agent: one per node, next to a kubelet, as root. It only reads from the runtime.
 *
 * On start, the settings are checked once against the runtime, the kubelet's files, Redis and the spool; an error ends the agent. After
 * that nothing ends it: what fails is retried, and shows in /readyz and the log meanwhile. On stop it stops observing, writes what it
 * has, tries to deliver it, and leaves the rest in the spool.
 */
import { setFlagsFromString } from 'node:v8';
import { CriClient, CriError } from '../cri/client.ts';
import type { RuntimeVersion } from '../cri/profiles.ts';
import { readClocks } from '../platform/clock.ts';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { type HttpServer, serveHttp } from '../platform/http.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { checkRedis } from '../platform/redisCheck.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { VERSION } from '../platform/version.ts';
import { AGENT_SETTINGS, type AgentConfig, checkCombination } from './config.ts';
import { AgentMetrics } from './metrics.ts';
import { KubeletClient } from './observe/kubelet/client.ts';
import { ModeFile } from './observe/kubelet/modeFile.ts';
import { KubeletScraper } from './observe/kubelet/scraper.ts';
import { type KubeletAddress, kubeletAddress } from './observe/kubelet/settings.ts';
import { type KubeletSource, Observer } from './observe/observer.ts';
import { PaceFile } from './observe/stream/subscribePaceFile.ts';
import { Shipper } from './ship/shipper.ts';
import { openSpool } from './spool/openSpool.ts';
import type { Spool } from './spool/spool.ts';

const VERSION_TIMEOUT_MS = 5_000;
/** At its end an agent tries for this long to deliver what it has. */
export const HAND_OVER_MS = 3_000;

/** Runs until the signal is aborted. Throws PlegwatchError if a setting is wrong. */
export async function runAgent(config: AgentConfig, signal: AbortSignal): Promise<void> {
  // V8's mid-tier compiler never returns the memory it needed, and its code is no faster here (docs/development/bench.md).
  setFlagsFromString('--no-maglev');
  const log = createLogger(config.logLevel, 'agent').child({ cluster: config.cluster, node: config.node });
  log.info({ version: VERSION, settings: withoutSecrets(config, AGENT_SETTINGS) }, 'agent starting');
  checkCombination(config);
  const address = await kubeletAddress(config);
  const client = new CriClient(config.criEndpoint);
  const cleanUps: (() => Promise<void> | void)[] = [() => client.close()];
  try {
    const runtime = await identify(client, config);
    await checkQueue(config, log);
    const spool = await openSpoolOf(config, log, signal);
    cleanUps.push(() => spool.close());
    const metrics = new AgentMetrics();
    const shipper = new Shipper({
      redisUrl: config.redisUrl,
      cluster: config.cluster,
      node: config.node,
      spool,
      intervals: config,
      log,
    });
    cleanUps.push(() => shipper.stop(HAND_OVER_MS));
    const kubelet = address === null ? null : await startScraper(address, { config, log, metrics }, cleanUps);
    const observer = new Observer({
      config,
      client,
      runtime,
      agentVersion: VERSION,
      sink: spool,
      metrics,
      log,
      kubelet,
      paceStore: new PaceFile(config.spoolDir, log),
    });
    // Before the hand-over, which may be cut short.
    cleanUps.push(() => spool.stopHeartbeat(observer.observedUntil));
    cleanUps.push(() => observer.stop());
    await spool.startHeartbeat(() => observer.observedUntil);
    const http = await serve(config, { observer, shipper, spool, metrics });
    cleanUps.push(() => http.stop());
    log.info(
      {
        port: http.port,
        runtime,
        epoch: spool.current.meta.epoch,
        incarnation: spool.current.meta.incarnation,
      },
      'agent ready',
    );
    await aborted(signal);
    log.info('agent stopping');
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

async function startScraper(
  address: KubeletAddress,
  {
    config,
    log,
    metrics,
  }: { readonly config: AgentConfig; readonly log: Logger; readonly metrics: AgentMetrics },
  cleanUps: (() => Promise<void> | void)[],
): Promise<KubeletSource> {
  const store = await ModeFile.open({ dir: config.spoolDir, node: config.node, log });
  cleanUps.push(() => store.saved());
  const saved = await store.load(readClocks());
  const scraper = new KubeletScraper({
    client: new KubeletClient(address),
    log,
    onFailure: (reason) => metrics.kubeletErrors.inc({ reason }),
    period: config.intervalScrape,
  });
  const stop = new AbortController();
  const running = scraper.run(stop.signal);
  cleanUps.push(() => {
    stop.abort();
    return running;
  });
  return { scraper, store, saved };
}

async function identify(client: CriClient, config: AgentConfig): Promise<RuntimeVersion> {
  try {
    return await client.version(VERSION_TIMEOUT_MS);
  } catch (error) {
    throw explainRuntime(`--cri-endpoint unix://${config.criEndpoint}`, error);
  }
}

function explainRuntime(where: string, error: unknown): PlegwatchError {
  const cure = 'Start the runtime, or set --cri-endpoint (PLEGWATCH_CRI_ENDPOINT) to its CRI socket.';
  // The library adds text about balancers and resolvers, which a unix socket does not have.
  const detail = messageOf(error).replace(/\.? Resolution note:.*$|,name resolution:.*$/, '');
  const options = { cause: error };
  // What speaks another protocol, or none, has a socket that can be connected to.
  if (error instanceof CriError && error.code === 'UNAVAILABLE' && !detail.includes('Protocol error')) {
    return new PlegwatchError('CRI_UNREACHABLE', `No runtime answers at ${where}: ${detail}.`, cure, options);
  }
  const what = `What answers at ${where} is not a container runtime: ${detail}.`;
  return new PlegwatchError('CRI_NOT_A_RUNTIME', what, cure, options);
}

/** Evidence is worth recording without Redis too: one that is merely away does not keep the agent from starting. */
async function checkQueue(config: AgentConfig, log: Logger): Promise<void> {
  try {
    await checkRedis(config.redisUrl);
  } catch (error) {
    if (!(error instanceof PlegwatchError) || error.code !== 'REDIS_UNREACHABLE') throw error;
    log.warn(
      { code: error.code, error: error.message, cure: error.cure },
      'Redis unreachable, records stay in the spool',
    );
  }
}

function openSpoolOf(config: AgentConfig, log: Logger, signal: AbortSignal): Promise<Spool> {
  return openSpool(
    {
      dir: config.spoolDir,
      cluster: config.cluster,
      node: config.node,
      maxBytes: config.spoolMaxBytes,
      fsyncInterval: config.spoolFsync,
      retention: config.spoolRetention,
      fallback: config.spoolFallback,
      sweepInterval: config.intervalSpoolSweep,
      auditFile: config.auditFile,
      log,
    },
    signal,
  );
}

interface Running {
  readonly observer: Observer;
  readonly shipper: Shipper;
  readonly spool: Spool;
  readonly metrics: AgentMetrics;
}

function serve(config: AgentConfig, { observer, shipper, spool, metrics }: Running): Promise<HttpServer> {
  return serveHttp({
    address: config.httpAddress,
    metrics: () => {
      metrics.pendingEvents.set(observer.pendingEvents);
      metrics.trackedContainers.set(observer.trackedContainers);
      metrics.untrackedContainers.set(observer.untrackedContainers);
      metrics.overdueSuppressed.set(observer.overdueSuppressed);
      metrics.spoolBytes.set(spool.bytes);
      metrics.spoolDropped.set(spool.dropped);
      metrics.spoolInMemory.set(spool.isInMemory ? 1 : 0);
      metrics.unackedRecords.set(shipper.unacknowledged);
      return metrics.registry.metrics();
    },
    // A restart cures only a stuck reader: Redis or a full spool must never restart a fleet.
    live: { reader: () => observer.readerError },
    ready: {
      relist: () => observer.relistError,
      redis: () => shipper.error,
      spool: () => spool.error,
    },
  });
}
