/*
 * A simulated kubelet: what its own status of its pods is, and when its PodsAPI shows that. It is without sockets and timers, as the runtime's
 * core is; kubeletServer.ts adds a socket.
 *
 *   down ── comeUp() ──► initialising ── a while ──► up ── goDown() ──► down, with the status that the API server has
 *
 *   Generic PLEG   notices at its next relist, each second
 *   Evented PLEG   notices at an event, and relists every five minutes; each second without a stream
 *
 * A kubelet that has noticed something has it in its status some milliseconds later. It creates pods itself, and knows them from then on.
 */
import { status } from '@grpc/grpc-js';
import { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { type EventSubject, noteFault, type PodStatus, type TruthEntry } from './groundTruth.ts';
import { newPodStatus, podStatusNow } from './kubeletPods.ts';
import { randomFor } from './random.ts';
import type { RuntimeCore } from './runtimeCore.ts';

export interface SimulatedKubeletOptions {
  /** Whether it has Evented PLEG. Default false. */
  readonly evented?: boolean;
  /** The probability that a change of a pod's status reaches no watcher, as of a buffer that is full. Default 0. */
  readonly loses?: number;
}

/** The receiving end of a watch. */
export interface PodsWatcher {
  show(change: 'added' | 'modified' | 'deleted', pod: PodStatus): void;
  synced(): void;
  end(code: status): void;
}

const GENERIC_RELIST_MS = 1_000;
const EVENTED_RELIST_MS = 300_000;
/** From noticing a change until it is in the status. */
const SYNC_MS = { from: 1, to: 20 };

export class SimulatedKubelet {
  readonly #core: RuntimeCore;
  readonly #options: SimulatedKubeletOptions;
  readonly #later: (ms: number, run: () => void) => void;
  /** When in each period it relists. */
  readonly #phaseMs: number;
  readonly #statuses = new Map<string, PodStatus>();
  readonly #watchers = new Map<number, PodsWatcher>();
  /** Pods that changed since it last looked at them, and those that an event was about meanwhile, by UID. */
  readonly #changed = new Set<string>();
  readonly #announced = new Set<string>();
  readonly #overlooked = new Set<string>();
  #isDown = true;
  #isInitialising = false;
  #holds = 0;
  #stream: number | null = null;
  /** Counts relists that were planned: only the last one takes place. */
  #planned = 0;
  #plannedFor = Number.POSITIVE_INFINITY;
  #runs = 0;
  #watches = 0;
  #changes = 0;

  /** `later` runs a callback later, but never after the end of the simulation. */
  constructor(
    core: RuntimeCore,
    later: (ms: number, run: () => void) => void,
    options: SimulatedKubeletOptions = {},
  ) {
    this.#core = core;
    this.#later = later;
    this.#options = options;
    this.#phaseMs = randomFor(core.seed, 'kubelet').between(0, GENERIC_RELIST_MS);
    core.truth.listen((entry) => this.#happened(entry));
  }

  /** Whether calls are refused because it has only just started. */
  get isInitialising(): boolean {
    return this.#isInitialising;
  }

  /** The status of a pod; undefined for one that it does not know. */
  pod(podUid: string): PodStatus | undefined {
    return this.#statuses.get(podUid);
  }

  /** Starts; at first every call is refused. The pods that exist at its first start it knows already. */
  comeUp(initialisesForMs = 0): void {
    this.#runs += 1;
    if (this.#runs > 1)
      noteFault(this.#core.truth, 'kubelet_up', `it initialises for ${initialisesForMs} ms`);
    this.#isDown = false;
    this.#isInitialising = initialisesForMs > 0;
    const run = this.#runs;
    if (this.#isInitialising) {
      this.#later(initialisesForMs, () => {
        if (run === this.#runs) this.#isInitialising = false;
      });
    }
    for (const { pod } of this.#core.pods.sandboxes.values()) {
      if (run === 1) this.#look(pod.uid);
      else this.#changed.add(pod.uid);
    }
    for (const podUid of this.#statuses.keys()) this.#changed.add(podUid);
    this.#planRelist();
  }

  /** Its process ends, and with it every watch. */
  goDown(): void {
    noteFault(this.#core.truth, 'kubelet_down', `${this.#watchers.size} watches end`);
    this.#isDown = true;
    this.#isInitialising = false;
    this.#runs += 1;
    this.#planned += 1;
    this.#plannedFor = Number.POSITIVE_INFINITY;
    this.endWatches(status.UNAVAILABLE);
    this.#unsubscribe();
  }

  /** Notices nothing for this long; its PodsAPI answers. */
  holdUp(forMs: number): void {
    noteFault(this.#core.truth, 'kubelet_held_up', `${forMs} ms`);
    this.#holds += 1;
    this.#later(forMs, () => {
      this.#holds -= 1;
      if (this.#holds > 0) return;
      noteFault(this.#core.truth, 'kubelet_released', 'it notices again');
      for (const podUid of this.#announced) this.#lookSoon(podUid);
      this.#planRelist();
    });
  }

  /** Does not notice what happens to this container, until {@link notice}. */
  overlook(id: string): void {
    noteFault(this.#core.truth, 'kubelet_overlooks', 'it notices nothing of this container', id);
    this.#overlooked.add(id);
  }

  /** Notices from its next relist on what it has overlooked. */
  notice(id: string): void {
    if (!this.#overlooked.delete(id)) return;
    noteFault(this.#core.truth, 'kubelet_notices', 'it notices this container again', id);
    for (const [podUid, { containers }] of this.#statuses)
      if (containers.some((each) => each.id === id)) this.#changed.add(podUid);
    const uid = this.#core.pods.containers.get(id)?.sandbox.pod.uid;
    if (uid !== undefined) this.#changed.add(uid);
    this.#planRelist();
  }

  /** Ends every watch with a status, RESOURCE_EXHAUSTED as that of a client that reads too slowly. */
  endWatches(code: status): void {
    for (const [number, watcher] of [...this.#watchers]) {
      this.#left(number, status[code]);
      watcher.end(code);
    }
  }

  /** Begins a watch: it is shown every pod, then every change. Returns a function for when the watcher has left. */
  watch(watcher: PodsWatcher): () => void {
    this.#watches += 1;
    const number = this.#watches;
    this.#watchers.set(number, watcher);
    this.#core.truth.record({ what: 'watch', watch: number, change: 'opened', cause: '' });
    for (const pod of this.#statuses.values()) watcher.show('added', pod);
    watcher.synced();
    return () => this.#left(number, 'cancelled');
  }

  #left(number: number, cause: string): void {
    if (!this.#watchers.delete(number)) return;
    this.#core.truth.record({ what: 'watch', watch: number, change: 'closed', cause });
  }

  // The runtime.

  #happened(entry: TruthEntry): void {
    if (entry.what !== 'transition' && entry.what !== 'view') return;
    this.#changed.add(entry.pod.uid);
    if (this.#isDown) return;
    if (entry.what === 'transition' && entry.transition !== 'deleted') this.#create(entry);
    this.#planRelist();
  }

  /** It knows a pod that it creates. */
  #create({ pod, isSandbox }: EventSubject): void {
    if (isSandbox && !this.#statuses.has(pod.uid)) this.#set(newPodStatus(pod), 'added');
  }

  #planRelist(): void {
    if (this.#isDown) return;
    const isStreaming = this.#stream !== null;
    const periodMs = isStreaming ? EVENTED_RELIST_MS : GENERIC_RELIST_MS;
    const nowMs = this.#core.clock().mono / 1000;
    const sinceMs = (((nowMs - this.#phaseMs) % periodMs) + periodMs) % periodMs;
    const at = nowMs - sinceMs + periodMs;
    if (at >= this.#plannedFor - 1) return;
    this.#plannedFor = at;
    this.#planned += 1;
    const planned = this.#planned;
    this.#later(at - nowMs, () => {
      if (planned !== this.#planned) return;
      this.#plannedFor = Number.POSITIVE_INFINITY;
      this.#relist();
    });
  }

  #relist(): void {
    if (this.#isDown || this.#holds > 0) return;
    if (this.#core.isDown || this.#core.isStarting) {
      this.#planRelist();
      return;
    }
    if (this.#options.evented === true && this.#stream === null) this.#subscribe();
    for (const podUid of this.#changed) this.#lookSoon(podUid);
  }

  #subscribe(): void {
    const { stream } = this.#core.profile;
    if (stream !== 'broadcast' && stream !== 'steal') return;
    this.#core.open((number) => {
      this.#stream = number;
      return {
        number,
        send: (message) => this.#received(message),
        end: (_code, _details, cause) => {
          this.#stream = null;
          this.#core.closed(number, cause, 0);
          this.#planRelist();
        },
      };
    });
  }

  #unsubscribe(): void {
    const number = this.#stream;
    this.#stream = null;
    if (number !== null) this.#core.closed(number, 'cancelled', 0);
  }

  #received(message: Uint8Array): void {
    const podUid = podUidOf(message);
    if (podUid === undefined || this.#isDown) return;
    if (this.#holds > 0) this.#announced.add(podUid);
    else this.#lookSoon(podUid);
  }

  // The status of a pod.

  #lookSoon(podUid: string): void {
    this.#changes += 1;
    const delay = randomFor(this.#core.seed, 'kubelet-sync', this.#changes).between(SYNC_MS.from, SYNC_MS.to);
    const run = this.#runs;
    this.#later(delay, () => {
      if (run === this.#runs && this.#holds === 0) this.#look(podUid);
    });
  }

  #look(podUid: string): void {
    this.#changed.delete(podUid);
    this.#announced.delete(podUid);
    const sandbox = [...this.#core.pods.sandboxes.values()].find(({ pod }) => pod.uid === podUid);
    const before = this.#statuses.get(podUid) ?? (sandbox && newPodStatus(sandbox.pod));
    if (before === undefined) return;
    const now = podStatusNow(this.#core.pods, before, this.#overlooked);
    if (!this.#statuses.has(podUid)) this.#set(now, 'added');
    else if (now.ended) this.#set(now, 'deleted');
    else if (JSON.stringify(now) !== JSON.stringify(before)) this.#set(now, 'modified');
  }

  #set(pod: PodStatus, change: 'added' | 'modified' | 'deleted'): void {
    if (pod.ended) this.#statuses.delete(pod.pod.uid);
    else this.#statuses.set(pod.pod.uid, pod);
    this.#core.truth.record({ what: 'status', ...pod });
    const { loses = 0 } = this.#options;
    this.#changes += 1;
    if (randomFor(this.#core.seed, 'kubelet-loses', this.#changes).chance(loses)) {
      noteFault(this.#core.truth, 'status_lost', `${pod.pod.name} ${change} reaches no watcher`);
      return;
    }
    for (const watcher of this.#watchers.values()) watcher.show(change, pod);
  }
}

/** Undefined where the event does not say it: the kubelet then has nothing to look at. */
function podUidOf(message: Uint8Array): string | undefined {
  try {
    return ContainerEventResponse.decode(message).podSandboxStatus?.metadata?.uid;
  } catch {
    return undefined;
  }
}
