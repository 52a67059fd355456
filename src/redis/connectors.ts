/*
 * How connections to Redis are opened: to a server or a node of a cluster, and to the master that Sentinels name. A guard bounds what they
 * may send.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions, SentinelConnector } from 'ioredis';
import type { ReplyGuard } from './replyGuard.ts';

/** How long a connection may take to close. */
const DISCONNECT_MS = 2_000;

type Connector = NonNullable<RedisOptions['Connector']>;

/** `refresh` brings the options of a new client up to date. */
export function addressConnector(
  guard: ReplyGuard | undefined,
  refresh: (options: object) => void = () => undefined,
): Connector {
  return class extends AbstractConnector {
    readonly #options: RedisOptions;
    #ended = new AbortController();

    constructor(options: unknown) {
      super(Object(options).disconnectTimeout ?? DISCONNECT_MS);
      this.#options = Object(options);
      refresh(this.#options);
    }

    override async connect(): Promise<Socket> {
      this.#ended = new AbortController();
      await guard?.ready(this.#ended.signal);
      unlessEnded(this.#ended.signal);
      const { host = '', port = 0, tls } = this.#options;
      this.stream = tls === undefined ? connect({ host, port }) : connectTls({ host, port, ...tls });
      guard?.watch(this.stream);
      this.stream.once('error', (error) => {
        this.firstError = error;
      });
      return this.stream;
    }

    override disconnect(): void {
      super.disconnect();
      this.#ended.abort();
    }
  };
}

/** The connections to the Sentinels themselves are guarded too. */
export function sentinelConnector(guard: ReplyGuard): Connector {
  const Address = addressConnector(guard);
  return class extends SentinelConnector {
    #ended = new AbortController();

    constructor(options: unknown) {
      super(Object(options));
      const open: unknown = Reflect.get(this, 'connectToSentinel');
      if (typeof open !== 'function')
        throw new Error('the client opens connections to Sentinels in another way');
      Reflect.set(this, 'connectToSentinel', (endpoint: object, more: object = {}) =>
        Reflect.apply(open, this, [endpoint, { ...more, Connector: Address }]),
      );
    }

    override async connect(...how: Parameters<SentinelConnector['connect']>): Promise<Socket> {
      this.#ended = new AbortController();
      await guard.ready(this.#ended.signal);
      unlessEnded(this.#ended.signal);
      const stream = await super.connect(...how);
      guard.watch(stream);
      return stream;
    }

    override disconnect(): void {
      super.disconnect();
      this.#ended.abort();
    }
  };
}

/** Nobody would close a connection that is opened after the client was. */
function unlessEnded({ aborted }: AbortSignal): void {
  if (aborted) throw new Error('the connection to Redis was closed before it was opened');
}
