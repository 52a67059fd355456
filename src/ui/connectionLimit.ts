/*
 * The limit of connections to the page: where one more comes than there may be, the one that has waited longest without being worked for is
 * closed, and not the new one. Otherwise strangers who open connections and say nothing, or say it slowly, would lock everybody out.
 *
 * The address with the most connections gives way first.
 */
import type { Socket } from 'node:net';

export class ConnectionLimit {
  readonly #max: number;
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Socket>();
  /** With how many answers are being made and sent: a client may ask for the next one before it has this one. */
  readonly #working = new Map<Socket, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Closes another connection, or this one where all others are being worked for. */
  opened(socket: Socket): void {
    socket.once('close', () => {
      this.#waiting.delete(socket);
      this.#working.delete(socket);
    });
    if (this.#waiting.size + this.#working.size >= this.#max) {
      const closed = this.#longestWaiting() ?? socket;
      // `close` comes later than the next connection may.
      this.#waiting.delete(closed);
      closed.destroy();
      if (closed === socket) return;
    }
    this.#waiting.add(socket);
  }

  /** An answer for a client that may have it is made and sent: nobody's connection closes this one until that has ended. */
  workBegan(socket: Socket): () => void {
    const isWaiting = this.#waiting.delete(socket);
    const answers = this.#working.get(socket) ?? 0;
    // Otherwise it is closed already.
    if (isWaiting || answers > 0) this.#working.set(socket, answers + 1);
    return () => this.#workEnded(socket);
  }

  #workEnded(socket: Socket): void {
    const answers = this.#working.get(socket);
    if (answers === undefined) return;
    if (answers > 1) this.#working.set(socket, answers - 1);
    else if (this.#working.delete(socket)) this.#waiting.add(socket);
  }

  #longestWaiting(): Socket | undefined {
    const addresses = Map.groupBy(this.#waiting, ({ remoteAddress }) => remoteAddress);
    let most: Socket[] = [];
    for (const sockets of addresses.values()) if (sockets.length > most.length) most = sockets;
    return most[0];
  }
}
