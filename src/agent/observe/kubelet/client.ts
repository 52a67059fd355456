/*
 * The kubelet client: scrapes a kubelet's metrics, bounded in time and size, without following redirects; a failure is a value with
 * a stable reason.
 *
 * The files of the token and of the CA are read for each scrape, because both are rotated under running programs; after a 401 the
 * token is read again, and a new one is tried once. One connection is kept: a kubelet that ends closes it, long before the next scrape
 * is due.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { monoNow, readClocks } from '../../../platform/clock.ts';
import { messageOf } from '../../../platform/errors.ts';
import { cleanText } from '../../../protocol/text.ts';
import type { Mono, Wall } from '../../../protocol/units.ts';
import { hostOf, IdentityCheck, type KubeletIdentity } from './identity.ts';
import { type KubeletFigures, readMetrics } from './metrics.ts';
import { ScrapeError, type ScrapeFailure } from './scrapeError.ts';
import { type KubeletAddress, readCas, readToken } from './settings.ts';

export type Scrape =
  | {
      readonly ok: true;
      readonly figures: KubeletFigures;
      readonly identity: KubeletIdentity;
      /** The figures were read between these two. */
      readonly started: Mono;
      readonly ended: Mono;
      /** The wall clock at `ended`. */
      readonly wall: Wall;
    }
  | { readonly ok: false; readonly reason: ScrapeFailure; readonly message: string; readonly ended: Mono };

export interface KubeletClientOptions extends KubeletAddress {
  /** For the whole exchange. */
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
}

const TIMEOUT_MS = 5_000;
/** A kubelet with 110 pods has about a quarter of a megabyte. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_MESSAGE_LENGTH = 300;

interface MetricsResponse {
  readonly status: number;
  readonly text: string;
}

export class KubeletClient {
  /** Called when the kubelet closes the kept connection: it may have ended. */
  onLost: () => void = () => undefined;
  readonly #options: KubeletClientOptions;
  readonly #check: IdentityCheck;
  #identity: KubeletIdentity = 'NotChecked';
  #agent: http.Agent | null = null;
  /** The connection whose handshake is under way. */
  #opening: TLSSocket | null = null;
  /** Signal of the scrape under way. */
  #signal: AbortSignal | null = null;
  #ca = '';
  /** The connection kept between two scrapes. */
  #kept: Socket | null = null;

  constructor(options: KubeletClientOptions) {
    this.#options = options;
    this.#check = new IdentityCheck(options);
  }

  /** Scrapes once. Never throws; when aborted by the signal it fails as `Unreachable`. One call at a time. */
  async scrape(signal: AbortSignal): Promise<Scrape> {
    const started = monoNow();
    const deadline = AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS);
    try {
      const text = await this.#read(AbortSignal.any([deadline, signal]));
      const figures = readMetrics(text);
      if (figures === null)
        throw new ScrapeError('NotMetrics', 'the answer contains no metrics of a kubelet');
      const { mono: ended, wall } = readClocks();
      return { ok: true, figures, identity: this.#identity, started, ended, wall };
    } catch (error) {
      // The connection may be in any state, so the next scrape makes a new one.
      this.close();
      const { reason, message } =
        deadline.aborted && !signal.aborted ? this.#timeout() : scrapeErrorOf(error);
      return { ok: false, reason, message: cleanText(message, MAX_MESSAGE_LENGTH), ended: monoNow() };
    }
  }

  /** Closes the connection; the next scrape makes a new one. */
  close(): void {
    this.#kept = null;
    this.#opening?.destroy();
    this.#opening = null;
    this.#agent?.destroy();
    this.#agent = null;
  }

  async #read(signal: AbortSignal): Promise<string> {
    // A request that has no socket yet does not notice that it is aborted.
    const abort = () => this.#opening?.destroy(new Error('aborted'));
    this.#signal = signal;
    signal.addEventListener('abort', abort);
    try {
      return await this.#readAnswer(signal);
    } finally {
      // The deadline passes after the answer too, and a later scrape may open a connection then.
      signal.removeEventListener('abort', abort);
    }
  }

  async #readAnswer(signal: AbortSignal): Promise<string> {
    await this.#connect();
    const token = await this.#token();
    let answer = await this.#ask(token, signal);
    if (answer.status === 401) {
      const fresh = await this.#token();
      if (fresh !== token) answer = await this.#ask(fresh, signal);
    }
    return textOf(answer);
  }

  async #token(): Promise<string | null> {
    const { tokenFile } = this.#options;
    return tokenFile === undefined ? null : await readToken(tokenFile);
  }

  /** Creates the agent of the one connection, and another when a CA file has changed. */
  async #connect(): Promise<void> {
    const { url, caFiles } = this.#options;
    const ca = await readCas(caFiles, this.#ca);
    if (this.#agent !== null && ca === this.#ca) return;
    this.close();
    this.#ca = ca;
    const pool = { keepAlive: true, maxSockets: 1, maxFreeSockets: 1 };
    this.#agent = url.protocol === 'http:' ? new http.Agent(pool) : new https.Agent(pool);
    // The agent sends nothing before it is given the socket.
    if (url.protocol === 'https:')
      this.#agent.createConnection = (_options, created) => this.#open(ca, created);
  }

  /** Connects, and hands the socket over only if it leads to this node's kubelet. */
  #open(ca: string, created: (error: Error | null, socket: Duplex) => void = () => undefined): undefined {
    const { url, serverName } = this.#options;
    const socket = connect({
      host: hostOf(url),
      port: Number(url.port === '' ? 443 : url.port),
      minVersion: 'TLSv1.2',
      ca: ca === '' ? [] : ca,
      // #check decides instead.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
      // SNI cannot ask for an address.
      ...(serverName === undefined || isIP(serverName) !== 0 ? {} : { servername: serverName }),
    });
    this.#opening = socket;
    const failed = (error: Error) => created(error, socket);
    socket.once('error', failed);
    // The scrape was aborted before it connected: on a busy node, reading the files may take that long.
    if (this.#signal?.aborted === true) socket.destroy(new Error('aborted'));
    socket.once('secureConnect', () => {
      this.#opening = null;
      socket.off('error', failed);
      try {
        this.#identity = this.#check.accept(socket, ca !== '');
      } catch (error) {
        socket.destroy();
        return failed(error instanceof Error ? error : new Error(messageOf(error)));
      }
      created(null, socket);
    });
  }

  async #ask(token: string | null, signal: AbortSignal): Promise<MetricsResponse> {
    this.#kept = null;
    const request = this.#request(token, signal);
    try {
      return await this.#exchange(request);
    } catch (error) {
      // The kubelet may close a kept connection just as it is used again, and still be well.
      if (!request.reusedSocket || signal.aborted || codeOf(error) !== 'ECONNRESET') throw error;
      this.onLost();
      return await this.#exchange(this.#request(token, signal));
    }
  }

  #request(token: string | null, signal: AbortSignal): ClientRequest {
    const { url } = this.#options;
    return (url.protocol === 'http:' ? http : https).request({
      host: hostOf(url),
      port: url.port === '' ? undefined : Number(url.port),
      path: '/metrics',
      agent: this.#agent ?? undefined,
      signal,
      headers: {
        accept: 'text/plain; version=0.0.4',
        'accept-encoding': 'identity',
        'user-agent': 'plegwatch-agent',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
    });
  }

  async #exchange(request: ClientRequest): Promise<MetricsResponse> {
    const response = await respond(request);
    const { socket } = response;
    const status = response.statusCode ?? 0;
    if (status !== 200) {
      response.destroy();
      return { status, text: '' };
    }
    checkHeaders(response);
    const text = await readAll(response, this.#options.maxBytes ?? MAX_BYTES);
    this.#keep(socket, response.headers);
    return { status, text };
  }

  /** If the server limits how long it keeps connections, a close means nothing. */
  #keep(socket: Socket, headers: http.IncomingHttpHeaders): void {
    if (headers.connection?.toLowerCase() === 'close' || headers['keep-alive'] !== undefined) return;
    this.#kept = socket;
    if (socket.listenerCount('close', this.#closed) === 0) socket.once('close', this.#closed);
    // It may have been closed before the listener was added.
    if (socket.destroyed) this.#lost(socket);
  }

  readonly #closed = (): void => {
    if (this.#kept?.destroyed === true) this.#lost(this.#kept);
  };

  #lost(socket: Socket): void {
    if (this.#kept !== socket) return;
    this.#kept = null;
    this.onLost();
  }

  #timeout(): ScrapeError {
    return new ScrapeError(
      'Timeout',
      `no complete answer within ${(this.#options.timeoutMs ?? TIMEOUT_MS) / 1000} s`,
    );
  }
}

function respond(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    // There may be more than one; the first counts.
    request.on('error', reject);
    request.end();
  });
}

function textOf({ status, text }: MetricsResponse): string {
  if (status === 200) return text;
  if (status === 401)
    throw new ScrapeError('Unauthorized', 'the kubelet does not accept the token (HTTP 401)');
  if (status === 403) {
    throw new ScrapeError('Forbidden', 'the kubelet forbids it (HTTP 403): grant get on nodes/metrics');
  }
  if (status >= 300 && status < 400)
    throw new ScrapeError('Redirect', `redirect (HTTP ${status}), which is not followed`);
  throw new ScrapeError('BadStatus', `HTTP ${status}`);
}

function checkHeaders(response: IncomingMessage): void {
  const { 'content-encoding': encoding = 'identity', 'content-type': type = '' } = response.headers;
  const isText = /^\s*(text\/plain|application\/openmetrics-text)\b/i.test(type);
  if (encoding.toLowerCase() === 'identity' && isText) return;
  response.destroy();
  throw new ScrapeError(
    'NotMetrics',
    `the answer is ${cleanText(`${type || 'of no type'}, ${encoding}`, 100)}`,
  );
}

async function readAll(response: IncomingMessage, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) {
      response.destroy();
      throw new ScrapeError('TooLarge', `the answer is larger than ${maxBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|CERT_|CRL_|EPROTO$|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_|HOSTNAME_MISMATCH)/;

function scrapeErrorOf(error: unknown): ScrapeError {
  if (error instanceof ScrapeError) return error;
  const code = codeOf(error);
  const message = messageOf(error);
  if (TLS_CODE.test(code)) return new ScrapeError('Tls', message, { cause: error });
  if (code.startsWith('HPE_'))
    return new ScrapeError('NotMetrics', `the answer is not HTTP: ${message}`, { cause: error });
  return new ScrapeError('Unreachable', message === '' ? code : message, { cause: error });
}

const codeOf = (error: unknown): string => String(Reflect.get(Object(error), 'code') ?? '');
