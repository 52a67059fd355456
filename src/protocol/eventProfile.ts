/*
 * What the comparison must know of a runtime: which events it sends at all, and how early. The table of runtimes is in
 * ../cri/profiles.ts.
 */
import type { EventType } from './record.ts';
import type { Micros } from './units.ts';

export interface PlegProfile {
  /** The events that this runtime announces; a transition without one is a blind spot, never a miss. */
  readonly sandboxEvents: readonly EventType[];
  readonly containerEvents: readonly EventType[];
  /** Whether removing a sandbox announces the containers that go with it. */
  readonly announcesRemovedWithSandbox: boolean;
  /** Whether a container that lives very shortly may be announced STOPPED before it is STARTED. */
  readonly stoppedMayComeFirst: boolean;
  /** Whether it is known that a start that fails is never announced, neither as STARTED nor as STOPPED. */
  readonly failedStartsUnannounced: boolean;
  /** How long before a sandbox leaves the list its DELETED may be announced. */
  readonly lead: Micros;
}
