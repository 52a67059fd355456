/*
 * Whether the CRI behind a socket is ready, and which images it has. containerd accepts calls before its CRI is initialized, and refuses them with
 * "server is not initialized yet"; its other interfaces do not report this. One bare gRPC call needs nothing but Node.
 */
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';

const TIMEOUT_MS = 2_000;
/** An empty gRPC message: not compressed, length 0. */
const EMPTY = Buffer.alloc(5);

/** True when RuntimeService/Status returns OK. */
export const isCriReady = async (socketPath: string): Promise<boolean> =>
  (await ask(socketPath, 'RuntimeService/Status')) !== null;

/** Whether the CRI lists an image of each of these names. */
export async function hasImages(socketPath: string, names: readonly string[]): Promise<boolean> {
  const list = await ask(socketPath, 'ImageService/ListImages');
  return list !== null && names.every((name) => list.includes(name));
}

/** The answer to a call without arguments, as it is on the wire; null if there is none, or not with OK. */
function ask(socketPath: string, method: string): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const session = connect('http://localhost', { createConnection: () => connectSocket(socketPath) });
    const done = (answer: Buffer | null) => {
      session.destroy();
      resolve(answer);
    };
    session.once('error', () => done(null));
    session.setTimeout(TIMEOUT_MS, () => done(null));
    const call = session.request({
      ':method': 'POST',
      ':path': `/runtime.v1.${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const received: Buffer[] = [];
    call.on('data', (chunk: Buffer) => received.push(chunk));
    call.once('error', () => done(null));
    // A refusal has its status in the headers and no trailers.
    call.once('trailers', (trailers) =>
      done(trailers['grpc-status'] === '0' ? Buffer.concat(received) : null),
    );
    call.once('end', () => done(null));
    call.end(EMPTY);
  });
}
