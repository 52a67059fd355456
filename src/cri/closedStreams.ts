/*
 * Releases what closed HTTP/2 streams still hold.
 *
 * Each stream has an internal object of Node's that survives collections of the young generation. It holds the stream, whose listeners
 * hold the call, which holds the answer: all of it waited for a full collection, 34 kB and the buffers of both answers per relist. A
 * closed stream emits nothing more, so its listeners can be removed.
 */
import { subscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';

/** Node's documented channel for closed client streams. If it is silent, memory is only released later. */
const CLOSED = 'http2.client.stream.close';

/** For all streams of this process from now on. */
export function releaseClosedStreams(): void {
  subscribe(CLOSED, (message) => {
    const stream: unknown = Reflect.get(Object(message), 'stream');
    // It may still have data to be read, and its end comes after that. After its own `close` nothing follows but what its listeners do in
    // the same turn.
    if (stream instanceof EventEmitter) stream.once('close', () => setImmediate(release, stream));
  });
}

function release(stream: EventEmitter): void {
  stream.removeAllListeners();
  // An error without a listener would end the process.
  stream.on('error', () => undefined);
}
