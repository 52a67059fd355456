/*
 * One connection to Postgres whose TLS is negotiated as libpq does it. The driver knows TLS or no TLS, not "if the server has it", and
 * verifies the host name with `sslmode=require` too.
 *
 *   connect ── disable, or a unix socket ──────────────────────────────► startup
 *      └── SSLRequest ── S ── handshake ─────────────────────────────────► startup
 *                  │            └─ fails, prefer ── connect again ───────► startup without TLS
 *                  └── N ── prefer ────────────────────────────────────► startup without TLS
 */
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates, TLSSocket } from 'node:tls';
import { Connection } from 'pg';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { explainTls } from '../platform/tls.ts';
import {
  type DatabaseAccess,
  type DatabaseSettings,
  databaseAt,
  databaseSettingOf,
  databaseTlsNames,
} from './databaseAccess.ts';

/** Its length, and the number that Postgres knows it by. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const KEEP_ALIVE_AFTER_MS = 30_000;

declare module 'pg' {
  interface Connection {
    /** Parses what comes from a stream into the events of the connection. */
    attachListeners(stream: Socket): void;
    /** Whether there is something to say goodbye to. */
    _connecting?: boolean;
    /** Whether we end it. */
    _ending: boolean;
  }
}

export class NegotiatedConnection extends Connection {
  readonly #settings: DatabaseSettings;
  /** The access, or why it cannot be read. */
  readonly #access: DatabaseAccess | PlegwatchError;
  /** The driver destroys it when the connection takes too long. */
  declare stream: Socket;
  #isOpen = false;
  /** Whether TLS is on and the server has not sent anything since. */
  #isUnanswered = false;

  constructor(settings: DatabaseSettings, access: DatabaseAccess | PlegwatchError) {
    super({});
    this.#settings = settings;
    this.#access = access;
  }

  /** Called by the driver, which then waits for `connect`, `error` or `end`. */
  connect(): void {
    this._connecting = true;
    this.#open().then(
      (stream) => {
        this.#isOpen = true;
        this.#isUnanswered = stream instanceof TLSSocket;
        stream.once('data', () => {
          this.#isUnanswered = false;
        });
        stream.setNoDelay(true);
        stream.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
        this.attachListeners(stream);
        this.emit('connect');
      },
      (error: unknown) => {
        this.stream.destroy();
        this.emit('error', error);
        this.emit('end');
      },
    );
  }

  async #open(): Promise<Socket> {
    if (this.#access instanceof PlegwatchError) throw this.#access;
    const { host, tls } = this.#access;
    const raw = await this.#dial(this.#access);
    if (tls.mode === 'disable' || host.startsWith('/')) return raw;
    raw.write(SSL_REQUEST);
    const [answer] = (await once(raw, 'data')) as [Buffer];
    // More than one byte can only be from somebody in between, who hopes that it is taken for a part of the encrypted stream.
    const text = answer.toString('latin1');
    if (text === 'N') {
      if (tls.mode === 'prefer') return raw;
      throw this.#failure(
        'the server has no TLS',
        'Turn TLS on in Postgres (ssl = on), or set the sslmode to prefer or disable.',
      );
    }
    if (text !== 'S') {
      throw new PlegwatchError(
        'DATABASE_UNREACHABLE',
        `What answers at ${databaseAt(this.#settings)} is not Postgres: it does not know the request for TLS.`,
        `Correct host and port in ${databaseSettingOf(this.#settings)}.`,
      );
    }
    try {
      return await this.#shakeHands(raw, this.#access);
    } catch (error) {
      if (tls.mode !== 'prefer') throw this.#explained(error);
      raw.destroy();
      return this.#dial(this.#access);
    }
  }

  async #dial({ host, port }: DatabaseAccess): Promise<Socket> {
    const socket = host.startsWith('/')
      ? connect({ path: `${host}/.s.PGSQL.${port}` })
      : connect({ host, port });
    this.#take(socket);
    await once(socket, 'connect');
    return socket;
  }

  async #shakeHands(raw: Socket, { host, tls }: DatabaseAccess): Promise<TLSSocket> {
    const { mode, verifies, ca, cert, key } = tls;
    const socket = connectTls({
      socket: raw,
      host,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      rejectUnauthorized: verifies,
      ...(verifies ? { ca: ca ?? getCACertificates('system') } : {}),
      ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
    });
    this.#take(socket);
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Makes this the stream. Until it is open, whoever waits for it gets its errors. */
  #take(socket: Socket): void {
    this.stream = socket;
    socket.on('error', (error) => {
      if (this._ending) return;
      // With TLS 1.3 the server refuses our certificate only after the handshake.
      if (!this.#isOpen || this.stream !== socket) return;
      this.emit('error', this.#explained(error));
      this.#isUnanswered = false;
    });
    socket.on('close', () => {
      if (this.stream !== socket) return;
      if (this.#isOpen) {
        const error = new Error('Connection terminated');
        if (this.#isUnanswered && !this._ending) this.emit('error', this.#explained(error));
        this.emit('end');
      } else socket.emit('error', new Error('Connection terminated'));
    });
  }

  #explained(error: unknown): unknown {
    const tls = explainTls(error, databaseTlsNames(this.#settings), this.#isUnanswered);
    return tls === null ? error : this.#failure(tls.message, tls.cure, error);
  }

  #failure(message: string, cure: string, cause?: unknown): PlegwatchError {
    const what = `The TLS connection to Postgres at ${databaseAt(this.#settings)} fails: ${messageOf(message)}.`;
    return new PlegwatchError('DATABASE_TLS', what, cure, { cause });
  }
}
