/*
 * The kubelet's PodsAPI for tests: a test scripts what it sends and answers.
 */
import { status } from '@grpc/grpc-js';
import type { SocketListener } from '../../devtools/simulator/listener.ts';
import { SYNCED } from '../../devtools/simulator/podsApiMessages.ts';
import { type PodsWatchCall, servePodsApi } from '../../devtools/simulator/podsApiServer.ts';

export class FakePodsApi {
  readonly socket: string;
  /** How many streams were asked for. */
  asked = 0;
  /** The UIDs of GetPod calls, in order. */
  readonly queried: string[] = [];
  /** The first messages to a new watcher. */
  initial: readonly Buffer[] = [SYNCED];
  /** The error of a new watch; null: it is served. */
  refusal: status | null = null;
  /** The answer to GetPod; null: none ever; a status: it fails with that. */
  answer: (podUid: string) => Buffer | status | null = () => status.NOT_FOUND;
  readonly #watchers = new Set<PodsWatchCall>();
  #listener: SocketListener | null = null;

  constructor(socket: string) {
    this.socket = socket;
  }

  async start({ implementsPods = true }: { readonly implementsPods?: boolean } = {}): Promise<void> {
    const handlers = {
      watch: (call: PodsWatchCall) => this.#watch(call),
      getPod: (podUid: string) => {
        this.queried.push(podUid);
        return this.answer(podUid);
      },
    };
    this.#listener = await servePodsApi(this.socket, implementsPods ? handlers : null);
  }

  /** Breaks every connection and removes the socket. */
  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = null;
    this.#watchers.clear();
    await listener?.close();
  }

  send(...messages: readonly Buffer[]): void {
    for (const each of this.#watchers) for (const bytes of messages) each.send(bytes);
  }

  /** Ends every stream. */
  end(code: status): void {
    for (const each of this.#watchers) each.end(code);
    this.#watchers.clear();
  }

  #watch(call: PodsWatchCall): () => void {
    this.asked += 1;
    if (this.refusal !== null) {
      call.end(this.refusal);
      return () => undefined;
    }
    this.#watchers.add(call);
    for (const bytes of this.initial) call.send(bytes);
    return () => this.#watchers.delete(call);
  }
}
