import { once } from 'node:events';
import { connect, createServer, type IncomingHttpHeaders } from 'node:http2';
import { Duplex, duplexPair } from 'node:stream';
import { expect, test } from 'vitest';
import { DottedAuthority } from './authority.ts';

/** The fields that a server of Node.js receives for each of these requests, all over one connection. */
async function received(
  requests: readonly Readonly<Record<string, string>>[],
): Promise<IncomingHttpHeaders[]> {
  const [near, far] = duplexPair();
  const server = createServer();
  const seen: IncomingHttpHeaders[] = [];
  server.on('stream', (stream, headers) => {
    seen.push({ ...headers });
    stream.respond({}, { endStream: true });
  });
  server.emit('connection', Duplex.from({ readable: far.pipe(new DottedAuthority()), writable: far }));
  const session = connect('http://localhost', { createConnection: () => near });
  for (const request of requests) {
    const call = session.request({ ':path': '/', ...request });
    call.end();
    call.resume();
    await once(call, 'end');
  }
  session.destroy();
  return seen;
}

/** Every character that an authority may have, each before a slash, so that one wrong length of a code would hide the next slash. */
const ALL = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:%[]"]
  .map((character) => `${character}/`)
  .join('');

test.each([
  ['/run/containerd/containerd.sock'],
  [`${ALL}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`],
  // Their Huffman code is longer, so that they are sent as they are.
  ['/~~~~/~'],
  ['/tmp/a'],
])(
  'in an :authority that is a path, %s, slashes are received as dots, and nothing else is changed',
  async (path) => {
    const request = { ':authority': path, 'x-path': path, [`x-${'a'.repeat(200)}`]: 'b'.repeat(200) };
    const dotted = { ...request, ':authority': path.replaceAll('/', '.') };
    // A client names a field by its index from the second time on, and all that came between by shifted indexes.
    const requests = [request, { ...request, 'x-path': '/another' }, request];
    const seen = await received(requests);
    expect(seen).toMatchObject([dotted, { ...dotted, 'x-path': '/another' }, dotted]);
  },
);

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const [DATA, HEADERS] = [0, 1];
const [PADDED, PRIORITY] = [0x08, 0x20];

function frame(type: number, flags: number, payload: readonly number[] | Buffer): Buffer {
  const prefix = Buffer.alloc(9);
  prefix.writeUIntBE(payload.length, 0, 3);
  prefix.writeUInt8(type, 3);
  prefix.writeUInt8(flags, 4);
  return Buffer.concat([prefix, Buffer.from(payload)]);
}

test('the fields of padded frames and of those with a priority are found, and no message is changed, however the bytes are split', async () => {
  const connection = (path: string) => {
    const field = Buffer.concat([Buffer.from([0x41, path.length]), Buffer.from(path)]);
    return Buffer.concat([
      PREFACE,
      frame(HEADERS, PADDED | PRIORITY, [3, 0, 0, 0, 0, 16, ...field, 0x41, 1, 0x2f]),
      frame(DATA, 0, [0x41, 4, ...Buffer.from('/a/b')]),
      frame(HEADERS, 0, field),
    ]);
  };
  const sent = connection('/a/b');
  const expected = connection('.a.b');
  for (let size = 1; size <= sent.length; size += 1) {
    const dotted = new DottedAuthority();
    for (let at = 0; at < sent.length; at += size) dotted.write(Buffer.from(sent.subarray(at, at + size)));
    dotted.end();
    expect(Buffer.concat(await dotted.toArray())).toEqual(expected);
  }
});
