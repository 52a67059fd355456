/*
 * Sights of the kubelet's own status: when the PodsAPI first showed the start and the stop of each container.
 *
 *   watch    WatchPods. It covers changes from its `synced` on, until it breaks. A message that did not come proves nothing: the kubelet
 *            drops what does not fit into its buffer (kubelet pkg/kubelet/apis/pods/server.go, Broadcast)
 *   answer   of a GetPod
 *   ended    the kubelet has terminated the pod, or shows its phase as final, or a new watch began without it
 *
 * Messages may overtake each other, so what was shown first counts, never what was shown last. All of it is bounded; a pod that is
 * left out is not observed.
 */
import type { KubeletPod, KubeletPodAnswer, KubeletSight } from '../../protocol/observation.ts';
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { STARTED, STOPPED } from './stages.ts';

/** The stages that a pod's status shows. */
export const SHOWN_STAGES = [STARTED, STOPPED] as const;
export type ShownStage = (typeof SHOWN_STAGES)[number];

const MAX_PODS = 2_000;
const MAX_ENDED_PODS = 1_000;
const MAX_CONTAINERS = 256;
/** Ended pods, and containers that no status of their pod names any more, are remembered this long. */
const REMEMBERED_FOR: Micros = millis(5 * 60_000);
const FORGET_EVERY: Micros = millis(10_000);

/** When a stage of a container was first shown. */
export interface FirstShown {
  /** By a message of the watch, and by an answer; null where none has shown it. */
  readonly watched: Mono | null;
  readonly answered: Mono | null;
  /** The pod was terminating when it was shown. */
  readonly whileTerminating: boolean;
}

type Source = 'watched' | 'answered';

export class SeenContainer {
  readonly name: string;
  /** When a status first named the id, in whatever state. */
  readonly first: Mono;
  last: Mono;
  #started: FirstShown | null = null;
  #stopped: FirstShown | null = null;

  constructor(name: string, first: Mono) {
    this.name = name;
    this.first = first;
    this.last = first;
  }

  shown(stage: ShownStage): FirstShown | null {
    return stage === STARTED ? this.#started : this.#stopped;
  }

  show(stage: ShownStage, by: Source, at: Mono, whileTerminating: boolean): void {
    const known = this.shown(stage) ?? { watched: null, answered: null, whileTerminating };
    const shown = { ...known, [by]: known[by] ?? at };
    if (stage === STARTED) this.#started = shown;
    else this.#stopped = shown;
  }
}

export class SeenPod {
  readonly first: Mono;
  readonly containers = new Map<string, SeenContainer>();
  /** When the watch last reported it. */
  watched: Mono;
  isTerminating = false;
  /** The last that the watch reported of it could not be read. */
  isUnknown = false;
  /** When that last happened; null where it did not. */
  lastUnknown: Mono | null = null;
  /** When it ended; null where it has not, or has come back since. */
  ended: Mono | null = null;
  /** When it last ended, also where it has come back since. */
  lastEnded: Mono | null = null;

  constructor(first: Mono) {
    this.first = first;
    this.watched = first;
  }

  see({ containers, isTerminating }: KubeletPod, by: Source, at: Mono): void {
    this.isTerminating ||= isTerminating;
    for (const { id, name, state } of containers) {
      const container = this.containers.get(id) ?? new SeenContainer(name, at);
      this.containers.set(id, container);
      container.last = at;
      if (state === 'waiting') continue;
      container.show(STARTED, by, at, this.isTerminating);
      if (state === 'terminated') container.show(STOPPED, by, at, this.isTerminating);
    }
    this.#forgetBeyond(MAX_CONTAINERS, at);
  }

  /** The watch reports it: a static pod may come back with the uid of one that has ended, and messages may overtake each other. */
  watch(pod: KubeletPod, at: Mono): void {
    this.watched = at;
    this.isUnknown = false;
    if (this.ended !== null) this.isTerminating = false;
    this.ended = null;
    this.see(pod, 'watched', at);
  }

  becomeUnknown(at: Mono): void {
    this.watched = at;
    this.isUnknown = true;
    this.lastUnknown = at;
  }

  end(at: Mono): void {
    this.ended ??= at;
    this.lastEnded = this.ended;
  }

  /** Every container has ended in the status of a pod that was terminated (kubelet pkg/kubelet/status/status_manager.go, TerminatePod). */
  terminated(at: Mono): void {
    for (const container of this.containers.values())
      for (const stage of SHOWN_STAGES) container.show(stage, 'watched', at, this.isTerminating);
  }

  forget(before: Mono): void {
    const last = Math.max(...Array.from(this.containers.values(), (each) => each.last));
    for (const [id, each] of this.containers)
      if (each.last < before && each.last < last) this.containers.delete(id);
  }

  /** The oldest that the last status does not name. */
  #forgetBeyond(most: number, now: Mono): void {
    for (const [id, { last }] of this.containers) {
      if (this.containers.size <= most) return;
      if (last < now) this.containers.delete(id);
    }
  }
}

export class KubeletSights {
  readonly #pods = new Map<string, SeenPod>();
  /** The ended ones, the one that ended first at the front. */
  readonly #ended = new Set<string>();
  #opened: Mono | null = null;
  #since: Mono | null = null;
  #firstSince: Mono | null = null;
  #unobserved = 0;
  #forgot: Mono | null = null;

  /** Since when the watch covers every change; null where it does not now. */
  get since(): Mono | null {
    return this.#since;
  }

  /** When it first did; null where it never has. */
  get firstSince(): Mono | null {
    return this.#firstSince;
  }

  /** How often a pod was reported and left out because of the limits. */
  get unobserved(): number {
    return this.#unobserved;
  }

  covers(from: Mono): boolean {
    return this.#since !== null && this.#since <= from;
  }

  pod(podUid: string): SeenPod | undefined {
    return this.#pods.get(podUid);
  }

  see(sight: KubeletSight): void {
    switch (sight.is) {
      case 'opened':
        this.#opened = sight.at;
        this.#since = null;
        break;
      case 'synced':
        this.#synced(sight.at);
        break;
      case 'pod':
        this.#seePod(sight.pod, sight.at);
        break;
      case 'removed':
        this.#pods.get(sight.podUid)?.terminated(sight.at);
        this.#end(sight.podUid, sight.at);
        break;
      case 'unknown':
        this.#pods.get(sight.podUid)?.becomeUnknown(sight.at);
        break;
      case 'broken':
        this.#since = null;
        break;
    }
  }

  answered(answer: KubeletPodAnswer): void {
    if (!answer.found || answer.pod.containers.length > MAX_CONTAINERS) return;
    this.#pods.get(answer.podUid)?.see(answer.pod, 'answered', answer.at);
    // The message of its end may have been dropped.
    if (answer.pod.hasEnded) this.#end(answer.podUid, answer.at);
  }

  forget(now: Mono): void {
    if (this.#forgot !== null && now < shift(this.#forgot, FORGET_EVERY)) return;
    this.#forgot = now;
    const before = shift(now, -REMEMBERED_FOR);
    for (const podUid of this.#ended) {
      if ((this.#pods.get(podUid)?.ended ?? now) < before) this.#drop(podUid);
    }
    for (const pod of this.#pods.values()) pod.forget(before);
  }

  /** A pod that the watch has not reported since it was opened exists no more. */
  #synced(at: Mono): void {
    this.#since = at;
    this.#firstSince ??= at;
    const opened = this.#opened ?? at;
    for (const [podUid, { watched, ended }] of this.#pods)
      if (ended === null && watched < opened) this.#end(podUid, at);
  }

  #seePod(seen: KubeletPod, at: Mono): void {
    const known = this.#pods.get(seen.podUid);
    const isTooMany = known === undefined && this.#pods.size - this.#ended.size >= MAX_PODS;
    if (isTooMany || seen.containers.length > MAX_CONTAINERS) {
      this.#unobserved += 1;
      known?.becomeUnknown(at);
      return;
    }
    const pod = known ?? new SeenPod(at);
    this.#ended.delete(seen.podUid);
    this.#pods.set(seen.podUid, pod);
    pod.watch(seen, at);
    if (seen.hasEnded) this.#end(seen.podUid, at);
  }

  /** Also ends a pod that nothing has named: its end may have overtaken the message that does. */
  #end(podUid: string, at: Mono): void {
    const pod = this.#pods.get(podUid) ?? new SeenPod(at);
    this.#pods.set(podUid, pod);
    pod.end(at);
    this.#ended.add(podUid);
    const [oldest] = this.#ended;
    if (this.#ended.size > MAX_ENDED_PODS && oldest !== undefined) this.#drop(oldest);
  }

  #drop(podUid: string): void {
    this.#ended.delete(podUid);
    this.#pods.delete(podUid);
  }
}
