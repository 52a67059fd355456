/*
 * A gRPC server on a unix socket whose connections are in our hands, so that it can go away as a killed process does:
 * every socket is cut at once, and clients see "Connection dropped" instead of a polite end.
 */
import { createServer, type Socket } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { messageOf, PlegwatchError } from '../../src/platform/errors.ts';
import { clearSocketPath } from './socketPath.ts';

export interface SocketListener {
  /**
   * Closes the socket; its path is gone when this resolves. Every connection is cut at once, or after so many
   * milliseconds in which it may end by itself.
   */
  close(graceMs?: number): Promise<void>;
}

/** Lets a gRPC server answer on a path. Throws SETTING_INVALID when the path cannot be used. */
export async function listenOn(path: string, server: Server): Promise<SocketListener> {
  await clearSocketPath(path);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  const listening = Promise.withResolvers<void>();
  listener.once('error', (error) =>
    listening.reject(
      new PlegwatchError(
        'SETTING_INVALID',
        `The socket ${path} cannot be listened on: ${messageOf(error)}.`,
        'Choose a path in a folder that is there and can be written to.',
        { cause: error },
      ),
    ),
  );
  listener.listen(path, listening.resolve);
  await listening.promise;
  return {
    async close(graceMs = 0) {
      const closed = Promise.withResolvers<void>();
      listener.close(() => closed.resolve());
      if (graceMs > 0) {
        injector.drain(graceMs);
        await settled(closed.promise, graceMs);
      }
      for (const socket of sockets) socket.destroy();
      injector.destroy();
      server.forceShutdown();
      await closed.promise;
    },
  };
}

/** Resolves with a promise, or after so many milliseconds. */
async function settled(promise: Promise<void>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
