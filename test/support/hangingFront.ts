/*
 * A way to a server that can hang: it then accepts connections and passes nothing on, as a machine whose disk is stuck does.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

interface Address {
  readonly host: string;
  readonly port: number;
}

export class HangingFront {
  readonly #server = createServer((client) => this.#accept(client));
  readonly #sockets = new Set<Socket>();
  readonly #to: Address;
  #isHanging = false;
  /** How many connections were made while it hangs. */
  held = 0;

  private constructor(to: Address) {
    this.#to = to;
  }

  static async to(host: string, port: number): Promise<HangingFront> {
    const front = new HangingFront({ host, port });
    front.#server.listen(0, '127.0.0.1');
    await once(front.#server, 'listening');
    return front;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  hang(): void {
    this.#isHanging = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Passes on what waits, also of those that connected meanwhile. */
  goOn(): void {
    this.#isHanging = false;
    for (const socket of this.#sockets) socket.resume();
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(client: Socket): void {
    if (this.#isHanging) this.held += 1;
    const server = connect(this.#to);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => from.destroy());
      from.once('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#isHanging) from.pause();
    }
  }
}
