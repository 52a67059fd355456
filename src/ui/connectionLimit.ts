/*
 * The limit of connections to the page: where one more comes than there may be, the one that has waited longest without being worked for is
 * closed, and not the new one. Otherwise strangers who open connections and say nothing, or say it slowly, would lock everybody out.
 *
 * Of several addresses, that with the most connections gives way first.
 */
import type { Socket } from 'node:net';

export class ConnectionLimit {
  readonly #max: number;
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Socket>();
  readonly #working = new Set<Socket>();

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

  /** An answer for a client that may have it is made and sent: nobody's connection closes this one. */
  workBegan(socket: Socket): void {
    if (this.#waiting.delete(socket)) this.#working.add(socket);
  }

  workEnded(socket: Socket): void {
    if (this.#working.delete(socket)) this.#waiting.add(socket);
  }

  #longestWaiting(): Socket | undefined {
    const addresses = Map.groupBy(this.#waiting, ({ remoteAddress }) => remoteAddress);
    let most: Socket[] = [];
    for (const sockets of addresses.values()) if (sockets.length > most.length) most = sockets;
    return most[0];
  }
}
