/*
 * Whether the CRI behind a socket answers. containerd takes calls before its CRI is initialised, and refuses them with
 * "server is not initialized yet"; its other interfaces do not tell. One bare gRPC call, so that nothing but Node is
 * needed.
 */
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';

const WITHIN_MS = 2_000;
/** A gRPC message without content: not compressed, length 0. */
const EMPTY = Buffer.alloc(5);

/** True when RuntimeService/Status is answered with OK. */
export function criAnswers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect('http://localhost', { createConnection: () => connectSocket(socketPath) });
    const done = (answer: boolean) => {
      session.destroy();
      resolve(answer);
    };
    session.once('error', () => done(false));
    session.setTimeout(WITHIN_MS, () => done(false));
    const call = session.request({
      ':method': 'POST',
      ':path': '/runtime.v1.RuntimeService/Status',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.once('error', () => done(false));
    // A refusal comes in the headers, and then there are no trailers.
    call.once('trailers', (trailers) => done(trailers['grpc-status'] === '0'));
    call.once('end', () => done(false));
    call.resume();
    call.end(EMPTY);
  });
}
