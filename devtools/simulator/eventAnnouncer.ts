/*
 * The announcer records each transition in the ground truth, decides whether this runtime announces it, and if so has the
 * event built.
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { EventSubject, GroundTruthLog, LifecycleTransition, SilentReason } from './groundTruth.ts';
import type { AnnounceOptions, EventDraft } from './podModel.ts';
import type { Profile } from './profiles.ts';

export interface AnnouncerOptions {
  readonly profile: Profile;
  readonly truth: GroundTruthLog;
  readonly announce: (draft: EventDraft) => void;
  /** While true nothing is announced: the runtime is down and its containers keep running. */
  readonly isDown: () => boolean;
  /** Whether there is a subscriber. Default: yes. */
  readonly hasSubscriber?: () => boolean;
}

/** How a transition is announced. */
export interface AnnouncedStep extends AnnounceOptions {
  readonly exitCode?: number | null;
  /** A reason not to announce it that overrides the profile. */
  readonly never?: SilentReason | null;
}

const EVENT_OF = { created: 'CREATED', started: 'STARTED', stopped: 'STOPPED', deleted: 'DELETED' } as const;

export class Announcer {
  readonly #options: AnnouncerOptions;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** Records a transition and has its event built. */
  step(subject: EventSubject, transition: LifecycleTransition, step: AnnouncedStep): void {
    const draft = this.record(subject, transition, step);
    if (draft !== null) this.#options.announce(draft);
  }

  /** Records a transition; returns the event to announce later, or null. */
  record(subject: EventSubject, transition: LifecycleTransition, step: AnnouncedStep): EventDraft | null {
    const silent = step.never ?? this.#silence(subject, EVENT_OF[transition], step);
    const { exitCode = null } = step;
    this.#options.truth.record({ what: 'transition', ...subject, transition, exitCode, silent });
    return silent === null ? { ...subject, type: EVENT_OF[transition], listed: true } : null;
  }

  /** Has an event built without recording a transition. */
  announce(
    subject: EventSubject,
    transition: LifecycleTransition,
    how: AnnounceOptions,
    listed: boolean,
  ): void {
    const type = EVENT_OF[transition];
    if (this.#silence(subject, type, how) === null) this.#options.announce({ ...subject, type, listed });
  }

  /** Builds an event that {@link record} returned, unless the runtime is down by now. */
  announceLater(draft: EventDraft | null): void {
    if (draft === null) return;
    if (!this.#options.isDown()) this.#options.announce(draft);
    else {
      const { id, type } = draft;
      const detail = 'the runtime went down before it built the event';
      this.#options.truth.record({ what: 'fault', fault: 'never_built', event: null, id, type, detail });
    }
  }

  /** Announces something that did not happen. */
  invent(subject: EventSubject, type: EventType): void {
    if (this.#options.isDown()) return;
    const detail = 'announced, and did not happen';
    this.#options.truth.record({
      what: 'fault',
      fault: 'spurious',
      event: null,
      id: subject.id,
      type,
      detail,
    });
    this.#options.announce({ ...subject, type, listed: true, spurious: true });
  }

  #silence({ isSandbox }: EventSubject, type: EventType, how: AnnounceOptions): SilentReason | null {
    const { profile, isDown, hasSubscriber } = this.#options;
    if (!(isSandbox ? profile.sandboxEvents : profile.containerEvents).includes(type)) return 'profile';
    if (isDown()) return 'down';
    if (!profile.buildsAlone && hasSubscriber?.() === false) return 'no_subscriber';
    const wanted = how.announce ?? true;
    return wanted === true || (wanted !== false && wanted.includes(type)) ? null : 'requested';
  }
}
