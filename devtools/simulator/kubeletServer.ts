/*
 * The PodsAPI of a simulated kubelet on a unix socket.
 */
import { status } from '@grpc/grpc-js';
import type { PodStatus } from './groundTruth.ts';
import type { SocketListener } from './listener.ts';
import { POD_EVENT, podAnswer, podBytes, podEvent, SYNCED } from './podsApiMessages.ts';
import { type PodsWatchCall, servePodsApi } from './podsApiServer.ts';
import type { SimulatedKubelet } from './simulatedKubelet.ts';

export class KubeletServer {
  readonly socket: string;
  readonly kubelet: SimulatedKubelet;
  #listener: SocketListener | null = null;

  constructor(socket: string, kubelet: SimulatedKubelet) {
    this.socket = socket;
    this.kubelet = kubelet;
  }

  /** The kubelet starts; at first it refuses every call. */
  async comeUp(initialisesForMs = 0): Promise<void> {
    if (this.#listener !== null) return;
    this.kubelet.comeUp(initialisesForMs);
    this.#listener = await servePodsApi(this.socket, {
      watch: (call) => this.#watch(call),
      getPod: (podUid) => this.#getPod(podUid),
    });
  }

  /** The kubelet's process ends: its connections break and its socket is gone. */
  async goDown(): Promise<void> {
    const listener = this.#listener;
    if (listener === null) return;
    this.#listener = null;
    this.kubelet.goDown();
    await listener.close();
  }

  /** The simulation ends. */
  async stop(): Promise<void> {
    await this.#listener?.close();
    this.#listener = null;
  }

  #watch(call: PodsWatchCall): () => void {
    if (this.kubelet.isInitialising) {
      call.end(status.FAILED_PRECONDITION);
      return () => undefined;
    }
    return this.kubelet.watch({
      show: (change, pod) => call.send(podEvent(POD_EVENT[change], encoded(pod))),
      synced: () => call.send(SYNCED),
      end: (code) => call.end(code),
    });
  }

  #getPod(podUid: string): Buffer | status {
    if (this.kubelet.isInitialising) return status.FAILED_PRECONDITION;
    const pod = this.kubelet.pod(podUid);
    return pod === undefined ? status.NOT_FOUND : podAnswer(encoded(pod));
  }
}

const withScheme = (id: string): string => `containerd://${id}`;

const encoded = ({ pod: { uid, name, namespace }, isTerminating, containers }: PodStatus): Buffer =>
  podBytes({
    ...{ uid, name, namespace, isTerminating },
    containers: containers.map((each) => ({
      ...each,
      id: withScheme(each.id),
      lastId: each.lastId === null ? undefined : withScheme(each.lastId),
    })),
  });
