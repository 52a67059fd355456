/*
 * `plegwatch ui`: the page, to look at the fleet, a node's timeline and a finding. It reads Postgres, and writes nothing anywhere.
 *
 * At its start it checks Postgres and, where the API server says who may read, its rights there. Later it waits for what is away: requests are
 * answered with what is wrong, and /readyz shows it.
 */
import { createKubeClient, type KubeClient } from '../kube/client.ts';
import { ACCESS_REVIEWS, type Resource, TOKEN_REVIEWS } from '../kube/object.ts';
import { type CleanUp, runCleanUps } from '../platform/cleanUps.ts';
import { errorFields, messageOf, PlegwatchError } from '../platform/errors.ts';
import { serveHttp } from '../platform/http.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { Loop } from '../platform/loop.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import { VERSION } from '../platform/version.ts';
import { openReadStore } from '../store/fleet.ts';
import type { OpenStore } from '../store/store.ts';
import { type Access, loopbackAccess } from './access/access.ts';
import { proxyAccess, trustedProxyAccess } from './access/proxyAccess.ts';
import { tokenAccess } from './access/tokenAccess.ts';
import { fallbacksAnswers } from './answers/fallbacks.ts';
import { findingAnswer } from './answers/finding.ts';
import { fleetAnswers } from './answers/fleet.ts';
import { changeAnswers, hoursAnswers } from './answers/hours.ts';
import { neighboursAnswer, poolAnswers } from './answers/pool.ts';
import { createReader, databaseRefusal, type ReaderUntil } from './answers/reader.ts';
import { searchAnswer } from './answers/search.ts';
import { timelineAnswer } from './answers/timeline.ts';
import { unobservedAnswers } from './answers/unobserved.ts';
import { versionsAnswers } from './answers/versions.ts';
import { UiMetrics } from './metrics.ts';
import { readPage } from './page.ts';
import { type Answer, type PostedAnswers, servePage } from './pageServer.ts';
import { recordAnswer } from './record.ts';
import { RequestError } from './requestError.ts';
import { type AccessKind, accessKindOf, UI_SETTINGS, type UiConfig } from './settings.ts';

const PING_MS = 5_000;
const PING_BACKOFF = { firstMs: 1_000, maxMs: 5_000 };

const MCP_PATH = '/mcp';

/** Runs until the signal is aborted. `mcp`: the answers of --mcp. Throws PlegwatchError if a setting is wrong. */
export async function runUi(config: UiConfig, signal: AbortSignal, mcp?: PostedAnswers): Promise<void> {
  const log = createLogger(config.logLevel, 'ui');
  log.info({ version: VERSION, settings: withoutSecrets(config, UI_SETTINGS) }, 'ui starting');
  const kind = accessKindOf(config, process.env['KUBERNETES_SERVICE_HOST'] !== undefined);
  const metrics = new UiMetrics();
  const cleanUps: CleanUp[] = [];
  try {
    const store = await openReadStore({ ...config, log, applicationName: 'plegwatch ui' });
    cleanUps.push(() => store.close());
    const database = watchDatabase(store, log);
    cleanUps.push(() => database.stop());
    const reader = createReader(store, config.cluster, config.databaseMaxConnections);
    const page = await servePage({
      address: config.pageAddress,
      access: await accessOf(kind, config, log, cleanUps),
      page: readPage(),
      answers: answersOf(reader),
      posted: mcp === undefined ? {} : { [MCP_PATH]: mcp(reader, log) },
      explain: explainWith(log),
      onAnswered(path, status, seconds) {
        metrics.requests.inc({ status: `${Math.floor(status / 100)}xx` });
        if (path.startsWith('/api/') || path === MCP_PATH) metrics.requestSeconds.observe(seconds);
      },
    });
    cleanUps.push(() => page.stop());
    const http = await serveHttp({
      address: config.httpAddress,
      metrics: () => metrics.registry.metrics(),
      live: () => ({}),
      ready: () => ({ database: database.error }),
    });
    cleanUps.push(() => http.stop());
    log.info({ port: page.port, access: kind }, 'ui ready');
    await aborted(signal);
    log.info('ui stopping');
  } finally {
    await runCleanUps(cleanUps, log);
  }
}

function answersOf(reader: ReaderUntil): Readonly<Record<string, Answer>> {
  // Several requests wait for one answer: none of them ends it.
  const shared = reader(new AbortController().signal);
  return {
    '/api/fleet': fleetAnswers(shared),
    '/api/unobserved': unobservedAnswers(shared),
    '/api/timeline': (query, signal) => timelineAnswer(reader(signal), query),
    '/api/fallbacks': fallbacksAnswers(shared),
    '/api/finding': (query, signal) => findingAnswer(reader(signal), query),
    '/api/versions': versionsAnswers(shared),
    '/api/pool': poolAnswers(shared),
    '/api/neighbours': (query, signal) => neighboursAnswer(reader(signal), query),
    '/api/record': (query, signal) => recordAnswer(reader(signal), query),
    '/api/hours': hoursAnswers(shared),
    '/api/change': changeAnswers(shared),
    '/api/search': (query, signal) => searchAnswer(reader(signal), query),
  };
}

function explainWith(log: Logger): (error: unknown) => RequestError {
  const throttled = new ThrottledLog(log);
  return (error) => {
    const refusal = databaseRefusal(error);
    throttled.warn(errorFields(error), 'a request could not be answered');
    if (refusal !== undefined) return refusal;
    const cure = 'Report it with the line in the log of plegwatch ui.';
    return new RequestError('INTERNAL', 'The answer could not be made.', cure, { cause: error });
  };
}

async function accessOf(
  kind: AccessKind,
  { kubeconfig, userHeader = '', groupsHeader, proxyAddress = [] }: UiConfig,
  log: Logger,
  cleanUps: CleanUp[],
): Promise<Access> {
  const proxy = { userHeader, groupsHeader, addresses: proxyAddress };
  if (kind === 'loopback') return loopbackAccess;
  if (kind === 'trusted-proxy') return trustedProxyAccess(proxy);
  const kube = await createKubeClient({ kubeconfig });
  cleanUps.push(() => kube.close());
  await checkRights(kube, kind === 'token' ? [TOKEN_REVIEWS, ACCESS_REVIEWS] : [ACCESS_REVIEWS], log);
  const api = { kube, log: new ThrottledLog(log) };
  return kind === 'token' ? tokenAccess(api) : proxyAccess(proxy, api);
}

/** Throws KUBE_REFUSED if the API server does not let us create one of these. */
async function checkRights(kube: KubeClient, reviews: readonly Resource[], log: Logger): Promise<void> {
  for (const resource of reviews) {
    const may = await kube.may({ verb: 'create', resource }).catch((error: unknown) => {
      if (error instanceof PlegwatchError && error.code !== 'KUBE_UNREACHABLE') throw error;
      log.warn({ error: messageOf(error) }, 'own permissions could not be checked with the API server');
      return true;
    });
    if (!may) {
      throw new PlegwatchError(
        'KUBE_REFUSED',
        `The API server does not let us create ${resource.plural}, and without it nobody can be let in.`,
        `Grant the verb create on ${resource.plural}.${resource.group} to the service account of plegwatch ui.`,
      );
    }
  }
}

function watchDatabase(store: OpenStore, log: Logger): { error(): string | null; stop(): Promise<void> } {
  let error: string | null = null;
  const loop = new Loop({
    async work() {
      await store.ping();
      error = null;
      return PING_MS;
    },
    onError(reason) {
      if (error === null) log.warn({ error: messageOf(reason) }, 'Postgres does not answer');
      error = 'Postgres does not answer';
    },
    backoff: PING_BACKOFF,
  });
  loop.start();
  return { error: () => error, stop: () => loop.stop() };
}
