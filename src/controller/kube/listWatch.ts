/*
 * Follows all objects of a kind: a list, then a watch from where the list was.
 *
 *   listing ── all pages ──► watching ── server ends it, or it breaks ──► watching again from the last version told
 *      ▲                        │
 *      └──── 410: the version is too old; or the watch fails again and again ────┘
 *
 * A list shows only how things are, a watch from an old version all that happened: while the server is merely in trouble (429,
 * 500, away) the version is kept, for about as long as the server keeps its history.
 *
 * Every failure waits with jitter before the next try (429, 500, resets and refusals alike), and so does a watch that ends
 * soon: the API server is never asked in a tight loop. Only a watch that told something, or lived, ends the backoff; a list
 * that succeeds does not, or lists would follow each other. The loop ends only with its signal.
 */

import { Backoff, type BackoffOptions } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { errorFields, messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import type { KubeClient, WatchEvent } from './client.ts';
import { KubeStatusError, retryAfterMs } from './failure.ts';
import { type KubeObject, type Resource, resourceName } from './object.ts';

const PAGE = 500;
/** Watches in a row that fail before the version is given up: where the server refuses what is asked, and where it is in trouble. */
const REFUSED_WATCHES = 5;
const FAILED_WATCHES = 20;
/** A watch that lived this long was well, whatever ended it. */
const WELL = millis(10_000);
const DEFAULT_BACKOFF: BackoffOptions = { firstMs: 1_000, maxMs: 30_000 };

/** An event of a watch, with what is kept of its object. */
export interface Followed<T> {
  readonly type: Exclude<WatchEvent['type'], 'BOOKMARK'>;
  readonly object: T;
}

export interface Following<T> {
  readonly kube: KubeClient;
  readonly resource: Resource;
  readonly metadataOnly: boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** What is kept of an object: whole ones are never held longer than a page of them. */
  readonly project: (object: KubeObject) => T;
  /** All objects there are, after every list. */
  readonly onList: (objects: readonly T[]) => void;
  readonly onEvent: (event: Followed<T>) => void;
  /** Told of every answer of the server: a watch that it takes, and bookmarks, are among them. */
  readonly onProgress: (at: Mono) => void;
  /** Told of every failure. */
  readonly onFailure: (message: string) => void;
  readonly backoff?: BackoffOptions | undefined;
  /** How long the server keeps one watch, in seconds. */
  readonly watchSeconds?: number | undefined;
}

/** Resolves when the signal has come. Never throws for what the API server does. */
export async function follow<T>(following: Following<T>): Promise<void> {
  const { signal } = following;
  const backoff = new Backoff(following.backoff ?? DEFAULT_BACKOFF);
  let version: string | null = null;
  let failed = 0;
  while (!signal.aborted) {
    try {
      version ??= await listAll(following);
      version = await watchOnce(following, version, backoff);
      failed = 0;
    } catch (error) {
      if (signal.aborted) break;
      failed += 1;
      const lost = isLost(error, failed);
      if (lost) failed = 0;
      // An event told before the failure has been told; where the watch stood is kept by watchOnce in the error.
      version = lost ? null : (lastVersionOf(error) ?? version);
      await waitAfter(following, backoff, error);
    }
  }
}

/** Lists every page at one version. A page that expired starts over, in the caller's next try. */
async function listAll<T>(following: Following<T>): Promise<string> {
  const { kube, resource, metadataOnly, signal, project, onList, onProgress } = following;
  const objects: T[] = [];
  let version = '';
  let next = '';
  do {
    const page = await kube.list(resource, {
      limit: PAGE,
      metadataOnly,
      signal,
      ...(next === '' ? {} : { continue: next }),
    });
    objects.push(...page.items.map(project));
    version = page.resourceVersion;
    next = page.continue;
    onProgress(monoNow());
  } while (next !== '');
  onList(objects);
  return version;
}

/** Follows one watch to its end and returns the version it got to. */
async function watchOnce<T>(following: Following<T>, from: string, backoff: Backoff): Promise<string> {
  const { kube, resource, metadataOnly, signal, project, onEvent, onProgress } = following;
  const timeoutSeconds = following.watchSeconds ?? 240 + Math.floor(Math.random() * 240);
  const opened = monoNow();
  let version = from;
  let told = false;
  const lived = () => between(opened, monoNow()) >= WELL;
  try {
    for await (const event of kube.watch(resource, {
      resourceVersion: from,
      timeoutSeconds,
      metadataOnly,
      signal,
      onOpen: () => onProgress(monoNow()),
    })) {
      told = true;
      if (event.object.metadata.resourceVersion !== '') version = event.object.metadata.resourceVersion;
      onProgress(monoNow());
      if (event.type !== 'BOOKMARK') onEvent({ type: event.type, object: project(event.object) });
    }
  } catch (error) {
    if (told || lived()) backoff.reset();
    throw new WatchBroken(version, error);
  }
  if (told || lived()) {
    backoff.reset();
    onProgress(monoNow());
  }
  if (!lived()) await sleep(backoff.next(), signal);
  return version;
}

/** A watch that broke, and the version it had got to. */
class WatchBroken extends Error {
  readonly version: string;

  constructor(version: string, cause: unknown) {
    super(messageOf(cause), { cause });
    this.version = version;
  }
}

const rootOf = (error: unknown): unknown => (error instanceof WatchBroken ? error.cause : error);
const lastVersionOf = (error: unknown): string | null =>
  error instanceof WatchBroken ? error.version : null;

function isExpired(error: unknown): boolean {
  const root = rootOf(error);
  return root instanceof KubeStatusError && root.code === 410;
}

const isLost = (error: unknown, failed: number): boolean =>
  isExpired(error) || failed >= (isRefused(error) ? REFUSED_WATCHES : FAILED_WATCHES);

/** The server answered, and it was not its own trouble: what was asked may be wrong, the version too. */
function isRefused(error: unknown): boolean {
  const root = rootOf(error);
  return root instanceof KubeStatusError && root.code !== 429 && root.code < 500;
}

async function waitAfter<T>(
  { resource, log, signal, onFailure }: Following<T>,
  backoff: Backoff,
  error: unknown,
): Promise<void> {
  const root = rootOf(error);
  const waitMs = Math.round(backoff.next(retryAfterMs(root)));
  onFailure(messageOf(root));
  log.warn(
    { resource: resourceName(resource), ...errorFields(root), waitMs },
    'following failed, trying again',
  );
  await sleep(waitMs, signal);
}
