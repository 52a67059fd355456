/*
 * The shared base of the parts of the comparison.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { Micros, Mono } from '../../protocol/units.ts';
import type { Expectations, ExpectationsParts } from './expectations.ts';
import type { KubeletLag } from './kubeletLag.ts';
import type { Starvation } from './starvation.ts';

export interface ComparisonOptions {
  readonly epochStart: Mono;
  /** After this long without its event a transition is overdue. */
  readonly overdueAfter: Micros;
  /** After this long it is judged. */
  readonly missedAfter: Micros;
  /** After this long the kubelet's own status should show a start or a stop. */
  readonly kubeletLateAfter: Micros;
  /** An event received this long after its true time is late. */
  readonly lateAfter: Micros;
  readonly profile: PlegProfile;
  /** Returns a fresh random UUID at every call. */
  readonly mintId: () => string;
}

export interface ComparisonParts extends ExpectationsParts {
  readonly options: ComparisonOptions;
  readonly expectations: Expectations;
  readonly starvation: Starvation;
  readonly kubelet: KubeletLag;
}
