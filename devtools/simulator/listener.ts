/*
 * A gRPC server on a unix socket that can close its connections as a killed process does: clients see "Connection
 * dropped" instead of an orderly end.
 */
import { createServer, type Socket } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { messageOf, PlegwatchError } from '../../src/platform/errors.ts';
import { clearSocketPath } from './socketPath.ts';

export interface SocketListener {
  /** Closes the socket and removes its path. Connections may end in order within `graceMs`, then they are destroyed. */
  close(graceMs?: number): Promise<void>;
}

/** Serves a gRPC server on a path. Throws SETTING_INVALID when the path cannot be used. */
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
        `Cannot listen on the socket ${path}: ${messageOf(error)}.`,
        'Choose a path in an existing folder that can be written to.',
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

/** Resolves with a promise, or after `ms`. */
async function settled(promise: Promise<void>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
