/*
 * Connections to servers that no Postgres would be, which end when it matters.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { silent } from '../../test/support/database.ts';
import { mono } from '../protocol/units.ts';
import { type Connections, openPool } from './connection.ts';

const SSL_REQUEST = 80_877_103;
const TERMINATED = 'SFATAL\0C57P01\0Mterminating connection\0\0';
const MINUTE_US = 60_000_000;

/** A message of the protocol: its type, and the length of the rest. */
function message(type: string, content: string | Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + content.length);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(content)]);
}

/** A server's messages when it lets a client in: AuthenticationOk and ReadyForQuery. */
const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', 'I')]);

let server: Server | undefined;
let pool: Connections | undefined;
afterEach(async () => {
  await pool?.end();
  server?.close();
});

/** A server, and the first request of each connection: for TLS, or plain. */
async function serve(onTls: (socket: Socket) => void, welcome = WELCOME) {
  const asked: string[] = [];
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (request: Buffer) => {
      const isTls = request.readInt32BE(4) === SSL_REQUEST;
      asked.push(isTls ? 'TLS' : 'plain');
      if (isTls) onTls(socket);
      else socket.write(welcome);
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return { asked, databaseUrl: `postgres://u:p@127.0.0.1:${port}/d` };
}

/** Sends this instead of a handshake. */
const answering = (answer: string) => (socket: Socket) => {
  socket.write('S');
  socket.once('data', () => socket.end(answer));
};

test('a connection that ends in the same breath as it begins fails the next statement, and nothing else', async () => {
  const { databaseUrl } = await serve(() => undefined, Buffer.concat([WELCOME, message('E', TERMINATED)]));
  pool = openPool({ databaseUrl, databaseSslmode: 'disable' }, 'test', 1, silent);
  const client = await pool.connect();
  await expect(client.query('SELECT 1')).rejects.toThrow(/not queryable/);
  client.release(true);
});

test.each([
  ['has none', (socket: Socket) => socket.end('N')],
  ['speaks something else', answering('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['ends the handshake', answering('')],
])(
  'with sslmode=prefer a server that %s is had without TLS, and asked for it again after a minute',
  async (_, onTls) => {
    const { asked, databaseUrl } = await serve(onTls);
    let now = mono(1);
    pool = openPool({ databaseUrl, databaseSslmode: 'prefer' }, 'test', 1, silent, () => now);
    const connect = async () => (await pool?.connect())?.release(true);
    await connect();
    await connect();
    expect(asked).toEqual(['TLS', 'plain', 'plain']);
    now = mono(1 + MINUTE_US);
    await connect();
    expect(asked.slice(3)).toEqual(['TLS', 'plain']);
  },
);
