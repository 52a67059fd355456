/*
 * Keeps up with all objects of a kind: a list, then watches from the version of the list on.
 *
 *   listing ── all pages ──► watching ── watch ends or breaks ──► watching again, from the last version received
 *      ▲                       │   ▲ │
 *      │                       │   └─┴── every ten minutes: listing again, at exactly the version that the watch has reached
 *      └── 410: version too old, or too many watches in a row failed ──┘
 *
 * A watch can miss changes unnoticed. The list of the version that it has reached proves it, since it differs from nothing that the watch has
 * yet to deliver. A watch that brought nothing since the last list, not even a bookmark, has not reached a version: the present list shows what
 * it missed.
 *
 * A list shows only the present state, a watch from an old version shows every change. While the server answers with errors (429, 5xx,
 * unreachable) the version is therefore kept, for about as long as the server keeps its history.
 *
 * Every failure backs off with jitter, and so does a watch that ends soon: the API server never gets requests in a tight loop. Only a
 * watch that delivered an event or lasted for a while resets the backoff; a successful list does not, or else lists would follow one
 * another.
 */
import { Backoff, type BackoffOptions, jittered } from '../platform/backoff.ts';
import { monoNow } from '../platform/clock.ts';
import { errorFields, messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { sleep } from '../platform/sleep.ts';
import { between, type Mono, millis, shift } from '../protocol/units.ts';
import { type KubeClient, pagesOf, type WatchEvent } from './client.ts';
import { KubeStatusError, retryAfterMs } from './kubeErrors.ts';
import { type KubeObject, type Resource, resourceName } from './object.ts';

/** List again after this many failed watches in a row: rejected requests, and other failures. */
const MAX_REJECTED_WATCHES = 5;
const MAX_FAILED_WATCHES = 20;
/** A watch that lasted this long was healthy, however it ended. */
const HEALTHY_AFTER = millis(10_000);
const DEFAULT_BACKOFF: BackoffOptions = { firstMs: 1_000, maxMs: 30_000 };
const RELIST_MS = 600_000;

export interface ListWatchEvent<T> {
  readonly type: Exclude<WatchEvent['type'], 'BOOKMARK'>;
  readonly object: T;
}

export interface ListWatchOptions<T> {
  readonly kube: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Reduces an object to the parts to keep, so that at most one page of whole objects is in memory. */
  readonly project: (object: KubeObject) => T;
  /** Called with all objects after each list. `isRelist`: whatever it shows and the watch did not deliver, the watch has missed. */
  readonly onList: (objects: readonly T[], isRelist: boolean) => void;
  readonly onEvent: (event: ListWatchEvent<T>) => void;
  /** Called after each successful response of the server, bookmarks and accepted watches included. */
  readonly onProgress: () => void;
  readonly onFailure: (error: string) => void;
  readonly backoff?: BackoffOptions | undefined;
  /** Default: 10 minutes. */
  readonly relistMs?: number | undefined;
}

/** How far the watches have come since a list. */
interface Progress {
  version: string;
  hasDelivered: boolean;
  relistAt: Mono;
}

/** Runs until the signal is aborted, and survives every failure of the API server. */
export async function listWatch<T>(options: ListWatchOptions<T>): Promise<void> {
  const { signal } = options;
  const backoff = new Backoff(options.backoff ?? DEFAULT_BACKOFF);
  let progress: Progress | null = null;
  let failures = 0;
  while (!signal.aborted) {
    try {
      progress ??= await listAll(options);
      if (monoNow() >= progress.relistAt) progress = await relist(options, progress);
      await watchOnce(options, progress, backoff);
      failures = 0;
    } catch (error) {
      if (signal.aborted) break;
      failures += 1;
      if (mustListAgain(error, failures)) {
        progress = null;
        failures = 0;
      }
      await backOff(options, backoff, error);
    }
  }
}

/** Lists all objects; with `watched`, to see what the watch missed. */
async function listAll<T>(options: ListWatchOptions<T>, watched?: Progress): Promise<Progress> {
  const { kube, resource, signal, project, onList, onProgress } = options;
  const atVersion = watched?.hasDelivered === true ? watched.version : undefined;
  const objects: T[] = [];
  let version = '';
  for await (const { items, resourceVersion } of pagesOf(kube, resource, { signal, atVersion })) {
    objects.push(...items.map(project));
    version = resourceVersion;
    onProgress();
  }
  onList(objects, watched !== undefined);
  return { version, hasDelivered: false, relistAt: nextRelist(options) };
}

/** If it fails, the watch goes on, until the next one is due. */
function relist<T>(options: ListWatchOptions<T>, progress: Progress): Promise<Progress> {
  progress.relistAt = nextRelist(options);
  return listAll(options, progress);
}

const nextRelist = ({ relistMs = RELIST_MS }: Pick<ListWatchOptions<never>, 'relistMs'>): Mono =>
  shift(monoNow(), millis(jittered(relistMs, 0.2)));

/** Follows one watch to its end, or until the next list is due. */
async function watchOnce<T>(
  { kube, resource, signal, project, onEvent, onProgress }: ListWatchOptions<T>,
  progress: Progress,
  backoff: Backoff,
): Promise<void> {
  const timeoutSeconds = 240 + Math.floor(Math.random() * 240);
  const opened = monoNow();
  const due = AbortSignal.timeout(Math.max(0, Math.ceil(between(opened, progress.relistAt) / 1000)));
  let delivered = false;
  const isHealthy = () => between(opened, monoNow()) >= HEALTHY_AFTER;
  try {
    const events = kube.watch(resource, {
      resourceVersion: progress.version,
      timeoutSeconds,
      signal: AbortSignal.any([signal, due]),
      onOpen: onProgress,
    });
    for await (const { type, object } of events) {
      delivered = true;
      progress.hasDelivered = true;
      if (object.metadata.resourceVersion !== '') progress.version = object.metadata.resourceVersion;
      onProgress();
      if (type !== 'BOOKMARK') onEvent({ type, object: project(object) });
    }
    if (isHealthy()) onProgress();
  } catch (error) {
    if (!due.aborted) throw error;
  } finally {
    if (delivered || isHealthy()) backoff.reset();
  }
  if (!isHealthy() && !due.aborted) await sleep(backoff.next(), signal);
}

function mustListAgain(error: unknown, failures: number): boolean {
  if (!(error instanceof KubeStatusError)) return failures >= MAX_FAILED_WATCHES;
  if (error.code === 410) return true;
  // A client error: something about the request may be wrong, possibly the version.
  const isRejected = error.code !== 429 && error.code < 500;
  return failures >= (isRejected ? MAX_REJECTED_WATCHES : MAX_FAILED_WATCHES);
}

async function backOff<T>(
  { resource, log, signal, onFailure }: ListWatchOptions<T>,
  backoff: Backoff,
  error: unknown,
): Promise<void> {
  const waitMs = Math.round(backoff.next(retryAfterMs(error)));
  onFailure(messageOf(error));
  log.warn(
    { resource: resourceName(resource), ...errorFields(error), waitMs },
    'list or watch failed, retrying',
  );
  await sleep(waitMs, signal);
}
