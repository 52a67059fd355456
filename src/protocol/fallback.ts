/*
 * The consequence for the pods of a node when its kubelet gives up the event stream. It depends on the version of the kubelet:
 *
 *   1.26 to 1.31   wrong_until_restart   Each event wrote its pod into the kubelet's cache with a time far in the future: nanoseconds taken as seconds
 *                                        (pkg/kubelet/pleg/evented.go, processCRIEvent). The cache refuses whatever is older while the gate is on, also
 *                                        after the fallback (pkg/kubelet/container/cache.go, Set), and relists are (pkg/kubelet/pleg/generic.go,
 *                                        updateCache). So pods of which an event came before the fallback stay as that event left them: their
 *                                        containers can end without being restarted or reported. Fixed in 1.32 (kubernetes#124297, #127195).
 *   1.32 to 1.36   slower                It relists once a second, as Generic PLEG does.
 *   1.37           hint_lost             It always relists once a second; without its stream no STOPPED makes it relist earlier (kubernetes#139262).
 *   others         unknown               Nobody has read their source.
 *
 * A kubelet that never received an event has no such pods, and is `slower` in every version up to 1.36.
 * The same in SQL: store.fallback_consequence.
 */

export const FALLBACK_CONSEQUENCES = ['wrong_until_restart', 'slower', 'hint_lost', 'unknown'] as const;
export type FallbackConsequence = (typeof FALLBACK_CONSEQUENCES)[number];

/** A mode as an agent reported it, with its reason and the version of the kubelet. */
export interface ReportedMode {
  readonly mode: string;
  readonly reason: string | null;
  readonly kubeletVersion: string | null;
}

export const FIRST_WITH_GATE = 26;
const FIRST_WITH_RIGHT_TIMES = 32;
export const FIRST_WITH_HINTS = 37;
/** The last version with a known meaning of giving up the stream; nothing is assumed of later ones. */
export const LAST_KNOWN = 37;

/** Reasons of a fallback before any event: see docs/explanation/modes.md. */
const WITHOUT_EVENTS: ReadonlySet<string | null> = new Set([
  'RuntimeUnsupported',
  'RuntimeDownAtStart',
  'NeverConnected',
]);

/** Null unless the kubelet gave up its stream. */
export function fallbackConsequence({
  mode,
  reason,
  kubeletVersion,
}: ReportedMode): FallbackConsequence | null {
  if (mode !== 'Fallback' && mode !== 'HintDisabled') return null;
  const minor = minorOf(kubeletVersion);
  if (minor === null || minor < FIRST_WITH_GATE || minor > LAST_KNOWN) return 'unknown';
  if (mode === 'HintDisabled') return minor >= FIRST_WITH_HINTS ? 'hint_lost' : 'unknown';
  if (minor >= FIRST_WITH_HINTS) return 'unknown';
  return minor < FIRST_WITH_RIGHT_TIMES && !WITHOUT_EVENTS.has(reason) ? 'wrong_until_restart' : 'slower';
}

/** The minor version as a number, such as 36 of `v1.36.2-vendor.4`; infinite for another major version. */
export function minorOf(version: string | null): number | null {
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?!\d)/.exec(version ?? '') ?? [];
  if (major === undefined || minor === undefined || major === '0') return null;
  return major === '1' ? Number(minor) : Number.POSITIVE_INFINITY;
}

/** The same in a few words. */
export const CONSEQUENCES_IN_SHORT: Readonly<Record<FallbackConsequence, string>> = {
  wrong_until_restart: 'pods stay wrong until it restarts',
  slower: 'it relists every second',
  hint_lost: 'it relists no earlier when a container stops',
  unknown: 'the consequence in its version is not known',
};

/** The kubelet's behaviour now, in a sentence of at most 200 characters. */
export const CONSEQUENCES: Readonly<Record<FallbackConsequence, string>> = {
  wrong_until_restart:
    'Until it restarts, pods of which it had events stay in its eyes as they were: containers that end are neither reported nor restarted. Drain the node or restart the kubelet.',
  slower: 'It relists every second, as Generic PLEG does, until it restarts.',
  hint_lost: 'It relists every second as before, and no earlier when a container stops, until it restarts.',
  unknown: 'The consequence in its version is not known.',
};
