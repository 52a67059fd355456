/*
 * A server of the kubelet's PodsAPI on a unix socket, without an opinion of its own: whoever starts it says what a watch is sent and what
 * GetPod answers.
 */
import { type MethodDefinition, Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import { listenOn, type SocketListener } from './listener.ts';

/** An open WatchPods call. */
export interface PodsWatchCall {
  send(message: Buffer): void;
  end(code: status): void;
}

export interface PodsApiHandlers {
  /** Returns what is called when the watcher has left. */
  watch(call: PodsWatchCall): () => void;
  /** The answer to GetPod; null: none ever; a status: it fails with that. */
  getPod(podUid: string): Buffer | status | null;
}

const unchanged = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

function method(name: string, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  return {
    path: `/v1alpha1.Pods/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: unchanged,
    requestDeserialize: unchanged,
    responseSerialize: unchanged,
    responseDeserialize: unchanged,
  };
}

const METHODS = { watchPods: method('WatchPods', true), getPod: method('GetPod', false) };

/** Serves the PodsAPI; without handlers a server that has none. Throws SETTING_INVALID when the path cannot be used. */
export function servePodsApi(socket: string, handlers: PodsApiHandlers | null): Promise<SocketListener> {
  const server = new Server();
  if (handlers !== null) {
    server.addService(METHODS, {
      watchPods: (call: ServerWritableStream<Buffer, Buffer>) => {
        const left = handlers.watch({
          send: (message) => call.write(message),
          end: (code) => {
            if (code === status.OK) call.end();
            else call.emit('error', { code, details: 'ended on purpose' });
          },
        });
        call.on('cancelled', left);
      },
      getPod: (
        { request }: { readonly request: Buffer },
        done: (error: { code: status } | null, answer?: Buffer) => void,
      ) => {
        // The tag and the length of a short UID come first.
        const answer = handlers.getPod(request.toString('utf8', 2));
        if (Buffer.isBuffer(answer)) done(null, answer);
        else if (answer !== null) done({ code: answer });
      },
    });
  }
  return listenOn(socket, server);
}
