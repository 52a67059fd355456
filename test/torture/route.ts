/*
 * A route: a TCP proxy between a program and Redis or Postgres, so that the network between them can fail.
 *
 *   open     data is forwarded, possibly delayed
 *   cut      connections are reset and new ones refused
 *   silent   connections stay open, and no data passes
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class BreakableRoute {
  readonly port: number;
  readonly #server: Server;
  readonly #to: number;
  readonly #sockets = new Set<Socket>();
  #silent = false;
  #delayMs = 0;

  private constructor(server: Server, to: number) {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
    this.port = address.port;
    this.#server = server;
    this.#to = to;
    server.on('connection', (client: Socket) => this.#connect(client));
  }

  /** A route to a port of this machine. */
  static async to(port: number): Promise<BreakableRoute> {
    const server = createServer({ noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BreakableRoute(server, port);
  }

  async cut(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  silence(): void {
    this.#silent = true;
    for (const socket of this.#sockets) socket.pause();
  }

  slow(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  async heal(): Promise<void> {
    this.#silent = false;
    this.#delayMs = 0;
    for (const socket of this.#sockets) socket.resume();
    if (this.#server.listening) return;
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  #connect(client: Socket): void {
    const server = connect({ port: this.#to, host: '127.0.0.1', noDelay: true });
    this.#pass(client, server);
    this.#pass(server, client);
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    let latest = 0;
    from.on('data', (chunk) => {
      const now = performance.now();
      latest = Math.max(latest, now + this.#delayMs);
      if (latest <= now) to.write(chunk);
      else setTimeout(() => to.writable && to.write(chunk), latest - now);
    });
    // The other side sees a broken connection: that is the fault.
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    if (this.#silent) from.pause();
  }
}
