/*
 * The consequence of a read of a pod for a watch. Pure.
 *
 *   published   the status shows the transition, so the lag is known
 *   stale       it does not yet, so the pod is read again
 *   ended       it never will: the pod was deleted or is another one, or a later container has taken the place
 *
 * A read without an outcome is `throttled`, if the API server answered 429, or `failed`: there was no answer, or it could not be decoded.
 */
import { lagBetween, type StatusLag } from './bounds.ts';
import { checkStatus, isPod, type PublishedPod } from './podStatus.ts';
import type { ClaimedWatch } from './statements.ts';
import type { ExpiredWatch, LagReason } from './watchStore.ts';

export const READ_RESULTS = ['published', 'stale', 'ended', 'throttled', 'failed'] as const;

export type ReadResult = (typeof READ_RESULTS)[number];

export type ReadOutcome =
  | { readonly is: 'published'; readonly lag: StatusLag }
  /** `podMatched`: the response was about this pod. `containerMatched`: the container is its present one. */
  | { readonly is: 'stale'; readonly podMatched: boolean; readonly containerMatched: boolean }
  | { readonly is: 'ended'; readonly reason: LagReason };

/** The API server creates UIDs of this form. Other UIDs belong to static pods, or to nothing that the API server ever had. */
const API_UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The kubelet may take this long to create the mirror pod of a static pod. */
const MIRROR_WITHIN_US = 60_000_000;
/** A sample whose pod was read for this long is slow. With less, it may have been read too rarely. */
const SLOW_MS = 30_000;

/** `pod` is undefined if it does not exist. `readEnded` is microseconds since 1970 on the store's clock. */
export function readOutcome(
  watch: ClaimedWatch,
  pod: PublishedPod | undefined,
  readEnded: number,
): ReadOutcome {
  if (pod === undefined || !isPod(pod, watch.pod_uid)) {
    const reason = absenceReason(watch, pod, readEnded);
    if (reason !== null) return { is: 'ended', reason };
    return { is: 'stale', podMatched: false, containerMatched: false };
  }
  const check = checkStatus(pod, {
    type: watch.event_type,
    containerId: watch.container_id,
    containerName: watch.container_name,
    attempt: watch.attempt,
    wasPresent: watch.container_matched,
  });
  if (check.is === 'stale') return { is: 'stale', podMatched: true, containerMatched: check.present };
  if (check.is === 'superseded') return { is: 'ended', reason: 'superseded' };
  return {
    is: 'published',
    lag: lagBetween(watch, { earliest: watch.stale_read, latest: readEnded }),
  };
}

/** Why a pod that does not exist, or has another UID, will never show the transition; null if it still may. */
function absenceReason(
  { pod_uid, pod_matched, arrived }: ClaimedWatch,
  pod: PublishedPod | undefined,
  now: number,
): LagReason | null {
  if (pod_matched) return 'pod_deleted';
  const hasApiUid = API_UID.test(pod_uid);
  if (!hasApiUid && now - arrived < MIRROR_WITHIN_US) return null;
  if (pod !== undefined) return 'uid_differs';
  return hasApiUid ? 'pod_deleted' : 'no_api_object';
}

/** The result of an expired watch. The lag of a slow sample, and of a transition after a fallback, has a minimum and no maximum. */
export function expiredResult({ kind, reads, behind_ms }: ExpiredWatch): StatusLag | LagReason {
  const isLag = kind === 'fallback' || (kind === 'sample' && behind_ms !== null && behind_ms >= SLOW_MS);
  if (isLag && behind_ms !== null) return { min: Math.max(0, behind_ms), max: null };
  return reads > 0 ? 'timed_out' : 'not_read';
}
