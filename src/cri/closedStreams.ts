/*
 * Lets go of what HTTP/2 streams that are closed still hold.
 *
 * Behind each stream stands an object of Node's own that the quick collection of young objects must keep. It holds the
 * stream, the stream's listeners hold the call, and the call holds the answer: everything grew old with it and waited for a
 * collection of the whole heap, 34 kB and the buffers of both answers for each relist. A stream that is closed tells nobody
 * anything any more, so its listeners can go.
 */
import { subscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';

/** Node's documented channel: told when a client's stream was closed. Where it is not told, memory grows old as before. */
const CLOSED = 'http2.client.stream.close';

/** For all streams of this process, from now on. */
export function letGoOfClosedStreams(): void {
  subscribe(CLOSED, (message) => {
    const stream: unknown = Reflect.get(Object(message), 'stream');
    // What it has received may not have been read yet, and its end is told after that. Once it says `close` itself nothing follows
    // but what its listeners do in the same turn.
    if (stream instanceof EventEmitter) stream.once('close', () => setImmediate(letGo, stream));
  });
}

function letGo(stream: EventEmitter): void {
  stream.removeAllListeners();
  // An error that nobody hears would end the process.
  stream.on('error', () => undefined);
}
