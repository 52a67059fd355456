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
  /** Whether the removal of a sandbox announces what it ends: the DELETED of its containers, the STOPPED of a running sandbox. */
  readonly announcesSandboxRemoval: boolean;
  /** Whether a very short-lived container may be announced STOPPED before it is announced STARTED. */
  readonly stoppedMayComeFirst: boolean;
  /** Whether a failed start is known never to be announced, neither as STARTED nor as STOPPED. */
  readonly failedStartsUnannounced: boolean;
  /**
   * Whether `started_at` equal to `created_at` is that of a failed start even if `finished_at` is later. Elsewhere a container
   * may have run that was started in the instant of its creation.
   */
  readonly failedStartsEndLater: boolean;
  /**
   * Whether `finished_at` is only when the runtime noticed the exit: up to seconds after it, and the time of the restart for what
   * ended while the runtime was down.
   */
  readonly exitsDatedWhenNoticed: boolean;
  /** Whether a sandbox is listed as NOTREADY before it starts. */
  readonly sandboxesListedBeforeStart: boolean;
  /** The DELETED of a sandbox may be sent this long before it leaves the list. */
  readonly lead: Micros;
}
