/*
 * The comparison's knowledge of a runtime: which events it sends, and how early. The table of runtimes is in ../cri/profiles.ts.
 */
import type { EventType } from './record.ts';
import type { Micros } from './units.ts';

export interface PlegProfile {
  /** The events that this runtime sends; a transition without one is a blind spot, never a miss. */
  readonly sandboxEvents: readonly EventType[];
  readonly containerEvents: readonly EventType[];
  /**
   * Whether the removal of a sandbox announces what it ends: the DELETED of its containers, the STOPPED of a running sandbox. Where it
   * does not, the STOPPED of a sandbox is still announced whose containers share a PID namespace, because a process of its own ends.
   */
  readonly announcesSandboxRemoval: boolean;
  /**
   * The events that are sent of a container that is restored from a checkpoint. `all`: what is sent of any other. `end_only`: neither CREATED nor
   * STARTED, and its status has the trait `unnamed_log`. `unknown`: its CREATED may not be sent, nor its STARTED, and nothing shows that it was
   * restored; the same holds for its sandbox.
   */
  readonly restores: 'all' | 'end_only' | 'unknown';
  /** Whether a very short-lived container may be announced STOPPED before it is announced STARTED. */
  readonly stoppedMayComeFirst: boolean;
  /** Whether a failed start is known never to be announced, neither as STARTED nor as STOPPED. */
  readonly failedStartsUnannounced: boolean;
  /**
   * Whether a failed start may be listed UNKNOWN: its end is announced when it is stopped or removed, so a STOPPED without the status of
   * its container does not prove that it ran.
   */
  readonly failedStartsMayBeUnknown: boolean;
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
