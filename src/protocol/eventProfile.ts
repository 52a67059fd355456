/*
 * What the comparison must know about a runtime: which events it sends, and how early. The table of runtimes is in
 * ../cri/profiles.ts.
 */
import type { EventType } from './record.ts';
import type { Micros } from './units.ts';

export interface PlegProfile {
  /** The events that this runtime sends; a transition without one is a blind spot, never a miss. */
  readonly sandboxEvents: readonly EventType[];
  readonly containerEvents: readonly EventType[];
  /** Whether the containers that are removed with a sandbox are announced. */
  readonly announcesRemovedWithSandbox: boolean;
  /** Whether a very short-lived container may be announced STOPPED before it is announced STARTED. */
  readonly stoppedMayComeFirst: boolean;
  /** Whether a failed start is known never to be announced, neither as STARTED nor as STOPPED. */
  readonly failedStartsUnannounced: boolean;
  /** The DELETED of a sandbox may be sent this long before it leaves the list. */
  readonly lead: Micros;
}
