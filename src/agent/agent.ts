/*
 * The agent: one per node, next to a kubelet, as root. It only reads from the runtime.
 *
 * On start, the settings are checked once against the runtime, the kubelet's files, Redis and the spool; an error ends the agent. After
 * that nothing ends it: what fails is retried, and shows in /readyz and the log meanwhile. On stop it stops observing, writes what it
 * has, tries to deliver it, and leaves the rest in the spool.
 */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { CriClient } from '../cri/client.ts';
import { Backoff } from '../platform/backoff.ts';
import { type CleanUp, runCleanUps } from '../platform/cleanUps.ts';
import { readClocks } from '../platform/clock.ts';
import { type ErrorCode, errorFields, messageOf, PlegwatchError } from '../platform/errors.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { sleep } from '../platform/sleep.ts';
import { aborted } from '../platform/stopSignal.ts';
import { VERSION } from '../platform/version.ts';
import { checkRedis } from '../redis/check.ts';
import { AgentServer } from './agentServer.ts';
import { AGENT_SETTINGS, type AgentConfig, checkCombination } from './config.ts';
import { AgentMetrics } from './metrics.ts';
import { KubeletClient } from './observe/kubelet/client.ts';
import { ModeFile } from './observe/kubelet/modeFile.ts';
import { KubeletScraper } from './observe/kubelet/scraper.ts';
import { type KubeletAddress, kubeletAddress } from './observe/kubelet/settings.ts';
import { type KubeletSource, Observer } from './observe/observer.ts';
import { SavedFile } from './observe/savedFile.ts';
import { startReaderProcess } from './observe/stream/readerProcess.ts';
import { SavedPaceSchema } from './observe/stream/subscribePolicy.ts';
import { identifyRuntime } from './runtimeCheck.ts';
import { ControllerKeyFile } from './ship/controllerKeyFile.ts';
import { NodeEnrolment } from './ship/nodeEnrolment.ts';
import { openNodeKey } from './ship/nodeKey.ts';
import { Shipper, type ShipperOptions } from './ship/shipper.ts';
import { openSpool } from './spool/openSpool.ts';
import type { Spool } from './spool/spool.ts';

const TEMPORARY: readonly ErrorCode[] = ['REDIS_UNREACHABLE', 'REDIS_REFUSED', 'REDIS_TLS'];

/** The pause after an epoch that could not start, doubled after each. */
const NEXT_EPOCH = { firstMs: 1_000, maxMs: 30_000 };

/** Runs until the signal is aborted, epoch after epoch. Throws PlegwatchError if a setting is wrong. */
export async function runAgent(config: AgentConfig, signal: AbortSignal): Promise<void> {
  const log = loggerOf(config);
  const metrics = new AgentMetrics();
  const server = new AgentServer(metrics, config);
  const http = await server.listen(config.httpAddress);
  try {
    const process = { config, log, metrics, server, port: http.port };
    await runEpoch(process, signal);
    const backoff = new Backoff(NEXT_EPOCH);
    while (!signal.aborted) {
      try {
        server.progressed();
        await runEpoch(process, signal);
        backoff.reset();
      } catch (error) {
        // The checks passed at the start: a runtime may be back later than its machine.
        log.error(errorFields(error), 'epoch could not start, retrying');
        server.progressed(`no epoch can start: ${messageOf(error)}`);
        await sleep(backoff.next(), signal);
      }
    }
  } finally {
    await http.stop();
  }
}

interface AgentProcess {
  readonly config: AgentConfig;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  readonly server: AgentServer;
  readonly port: number;
}

const loggerOf = ({ logLevel, cluster, node }: AgentConfig): Logger =>
  createLogger(logLevel, 'agent').child({ cluster, node });

/**
 * Ends as well when the epoch is full, which takes months, its folder is gone, or the machine was suspended: then everything starts again
 * with another epoch.
 */
async function runEpoch(
  { config, log, metrics, server, port }: AgentProcess,
  signal: AbortSignal,
): Promise<void> {
  // V8's mid-tier compiler never returns the memory it needed, and its code is no faster here (docs/development/bench.md).
  setFlagsFromString('--no-maglev');
  log.info({ version: VERSION, settings: withoutSecrets(config, AGENT_SETTINGS) }, 'agent starting');
  checkCombination(config);
  const address = await kubeletAddress(config);
  const client = new CriClient(config.criEndpoint);
  const cleanUps: CleanUp[] = [() => metrics.observesNothing(), () => client.close()];
  try {
    const runtime = await identifyRuntime(client, config.criEndpoint);
    await checkQueue(config, log);
    const spool = await openSpoolOf(config, log, signal, (reason) => server.progressed(reason));
    cleanUps.push(() => spool.close());
    const kubelet = address === null ? null : await startScraper(address, { config, log, metrics }, cleanUps);
    // From here to the observer, which sets the context of all batches, nothing is waited for.
    const shipper = new Shipper({
      redis: config,
      cluster: config.cluster,
      node: config.node,
      spool,
      ...(await openIdentity(config, spool, log)),
      intervals: config,
      log,
    });
    cleanUps.push(() => shipper.stop(config.intervalHandOver / 1_000));
    const observer = new Observer({
      config,
      client,
      runtime,
      agentVersion: VERSION,
      sink: spool,
      metrics,
      log,
      kubelet,
      paceStore: new SavedFile(join(config.spoolDir, 'stream.json'), SavedPaceSchema, log),
      startReader: (socket, events) => startReaderProcess(socket, events, config.intervalReaderSilence),
    });
    // Before the hand-over, which may be cut short.
    cleanUps.push(() => spool.stopHeartbeat(observer.observedUntil));
    cleanUps.push(() => observer.stop());
    await spool.startHeartbeat(() => observer.observedUntil);
    server.epochRuns({ observer, shipper, spool });
    cleanUps.push(() => server.epochEnds());
    const { epoch, incarnation } = spool.current.meta;
    log.info({ port, runtime, epoch, incarnation }, 'agent ready');
    await aborted(AbortSignal.any([signal, spool.full, observer.suspended]));
    if (signal.aborted) log.info('agent stopping');
    else if (observer.suspended.aborted) log.info('machine was suspended, the next epoch starts');
    else log.info('epoch is full or its folder was replaced, the next one starts');
  } finally {
    await runCleanUps(cleanUps, log);
  }
}

/** The key of this node and the controller's, as far as the settings name them. */
async function openIdentity(
  config: AgentConfig,
  spool: Spool,
  log: Logger,
): Promise<Pick<ShipperOptions, 'enrolment' | 'controllerKeys'>> {
  const { cluster, node, spoolDir: dir, identityTokenFile: tokenFile, controllerKeysFile } = config;
  if (controllerKeysFile === undefined) return {};
  const controllerKeys = new ControllerKeyFile(controllerKeysFile, log);
  if (tokenFile === undefined) return { controllerKeys };
  const { machine } = spool.current.meta;
  const key = await openNodeKey({ dir, cluster, node, machine, log });
  return { controllerKeys, enrolment: new NodeEnrolment({ cluster, node, key, tokenFile, controllerKeys }) };
}

async function startScraper(
  address: KubeletAddress,
  { config, log, metrics }: Pick<AgentProcess, 'config' | 'log' | 'metrics'>,
  cleanUps: CleanUp[],
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

/**
 * Evidence is worth recording without Redis too. One that is away, or does not accept our password or certificate, does not keep the
 * agent from starting: a rotated Secret may reach Redis before us. Another program in its place is a wrong setting.
 */
async function checkQueue(config: AgentConfig, log: Logger): Promise<void> {
  try {
    await checkRedis(config);
  } catch (error) {
    const isTemporary = error instanceof PlegwatchError && TEMPORARY.includes(error.code);
    if (!isTemporary) throw error;
    log.warn(
      { code: error.code, error: error.message, cure: error.cure },
      'Redis unreachable, records stay in the spool',
    );
  }
}

function openSpoolOf(
  config: AgentConfig,
  log: Logger,
  signal: AbortSignal,
  onWait: (reason: string) => void,
): Promise<Spool> {
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
      maxEpochAge: config.intervalEpoch,
      auditFile: config.auditFile,
      onWait,
      log,
    },
    signal,
  );
}
