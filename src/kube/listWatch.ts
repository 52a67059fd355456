/*
 * Keeps up with all objects of a kind: a list, then watches from the version of the list on.
 *
 *   listing ── all pages ──► watching ── watch ends or breaks ──► watching again, from the last version received
 *      ▲                        │
 *      └── 410: version too old, or too many watches in a row failed ──┘
 *
 * A list shows only the present state, a watch from an old version shows every change. While the server answers with errors (429, 5xx,
 * unreachable) the version is therefore kept, for about as long as the server keeps its history.
 *
 * Every failure backs off with jitter, and so does a watch that ends soon: the API server never gets requests in a tight loop. Only a
 * watch that delivered an event or lasted for a while resets the backoff; a successful list does not, or else lists would follow one
 * another.
 */
import { Backoff, type BackoffOptions } from '../platform/backoff.ts';
import { monoNow } from '../platform/clock.ts';
import { errorFields, messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { sleep } from '../platform/sleep.ts';
import { between, millis } from '../protocol/units.ts';
import { type KubeClient, pagesOf, type WatchEvent } from './client.ts';
import { KubeStatusError, retryAfterMs } from './kubeErrors.ts';
import { type KubeObject, type Resource, resourceName } from './object.ts';

/** List again after so many failed watches in a row: rejected requests, and other failures. */
const MAX_REJECTED_WATCHES = 5;
const MAX_FAILED_WATCHES = 20;
/** A watch that lasted this long was healthy, however it ended. */
const HEALTHY_AFTER = millis(10_000);
const DEFAULT_BACKOFF: BackoffOptions = { firstMs: 1_000, maxMs: 30_000 };

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
  /** Called with all objects after each list. */
  readonly onList: (objects: readonly T[]) => void;
  readonly onEvent: (event: ListWatchEvent<T>) => void;
  /** Called after each successful response of the server, bookmarks and accepted watches included. */
  readonly onProgress: () => void;
  readonly onFailure: (error: string) => void;
  readonly backoff?: BackoffOptions | undefined;
}

/** Runs until the signal is aborted, and survives every failure of the API server. */
export async function listWatch<T>(options: ListWatchOptions<T>): Promise<void> {
  const { signal } = options;
  const backoff = new Backoff(options.backoff ?? DEFAULT_BACKOFF);
  let version: string | null = null;
  let failures = 0;
  while (!signal.aborted) {
    try {
      version ??= await listAll(options);
      version = await watchOnce(options, version, backoff);
      failures = 0;
    } catch (error) {
      if (signal.aborted) break;
      failures += 1;
      if (mustListAgain(error, failures)) {
        version = null;
        failures = 0;
      } else if (error instanceof WatchBroken) {
        version = error.version;
      }
      await backOff(options, backoff, error);
    }
  }
}

/** Lists all objects, and returns the version of the list. */
async function listAll<T>(options: ListWatchOptions<T>): Promise<string> {
  const { kube, resource, signal, project, onList, onProgress } = options;
  const objects: T[] = [];
  let version = '';
  for await (const { items, resourceVersion } of pagesOf(kube, resource, { signal })) {
    objects.push(...items.map(project));
    version = resourceVersion;
    onProgress();
  }
  onList(objects);
  return version;
}

/** Follows one watch to its end, and returns the version that it reached. Throws {@link WatchBroken}. */
async function watchOnce<T>(options: ListWatchOptions<T>, from: string, backoff: Backoff): Promise<string> {
  const { kube, resource, signal, project, onEvent, onProgress } = options;
  const timeoutSeconds = 240 + Math.floor(Math.random() * 240);
  const opened = monoNow();
  let version = from;
  let delivered = false;
  const isHealthy = () => between(opened, monoNow()) >= HEALTHY_AFTER;
  try {
    const events = kube.watch(resource, {
      resourceVersion: from,
      timeoutSeconds,
      signal,
      onOpen: onProgress,
    });
    for await (const event of events) {
      delivered = true;
      if (event.object.metadata.resourceVersion !== '') version = event.object.metadata.resourceVersion;
      onProgress();
      if (event.type !== 'BOOKMARK') onEvent({ type: event.type, object: project(event.object) });
    }
  } catch (error) {
    if (delivered || isHealthy()) backoff.reset();
    throw new WatchBroken(version, error);
  }
  if (delivered || isHealthy()) {
    backoff.reset();
    onProgress();
  }
  if (!isHealthy()) await sleep(backoff.next(), signal);
  return version;
}

/** A watch failed after it had reached this version. */
class WatchBroken extends Error {
  readonly version: string;

  constructor(version: string, cause: unknown) {
    super(messageOf(cause), { cause });
    this.version = version;
  }
}

const causeOf = (error: unknown): unknown => (error instanceof WatchBroken ? error.cause : error);

function mustListAgain(error: unknown, failures: number): boolean {
  const cause = causeOf(error);
  if (!(cause instanceof KubeStatusError)) return failures >= MAX_FAILED_WATCHES;
  if (cause.code === 410) return true;
  // A client error: something about the request may be wrong, possibly the version.
  const isRejected = cause.code !== 429 && cause.code < 500;
  return failures >= (isRejected ? MAX_REJECTED_WATCHES : MAX_FAILED_WATCHES);
}

async function backOff<T>(
  { resource, log, signal, onFailure }: ListWatchOptions<T>,
  backoff: Backoff,
  error: unknown,
): Promise<void> {
  const cause = causeOf(error);
  const waitMs = Math.round(backoff.next(retryAfterMs(cause)));
  onFailure(messageOf(cause));
  log.warn(
    { resource: resourceName(resource), ...errorFields(cause), waitMs },
    'list or watch failed, retrying',
  );
  await sleep(waitMs, signal);
}
