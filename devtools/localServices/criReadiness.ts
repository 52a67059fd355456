/*
 * Whether the CRI behind a socket is ready. containerd accepts calls before its CRI is initialized, and refuses them with
 * "server is not initialized yet"; its other interfaces do not report this. One bare gRPC call needs nothing but Node.
 */
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';

const TIMEOUT_MS = 2_000;
/** An empty gRPC message: not compressed, length 0. */
const EMPTY = Buffer.alloc(5);

/** True when RuntimeService/Status returns OK. */
export function isCriReady(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect('http://localhost', { createConnection: () => connectSocket(socketPath) });
    const done = (answer: boolean) => {
      session.destroy();
      resolve(answer);
    };
    session.once('error', () => done(false));
    session.setTimeout(TIMEOUT_MS, () => done(false));
    const call = session.request({
      ':method': 'POST',
      ':path': '/runtime.v1.RuntimeService/Status',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.once('error', () => done(false));
    // A refusal has its status in the headers and no trailers.
    call.once('trailers', (trailers) => done(trailers['grpc-status'] === '0'));
    call.once('end', () => done(false));
    call.resume();
    call.end(EMPTY);
  });
}
