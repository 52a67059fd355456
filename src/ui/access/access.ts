/*
 * Who may read, and which clusters. One of three kinds: src/ui/settings.ts says when which applies.
 */
import type { IncomingMessage } from 'node:http';
import { RequestError } from '../requestError.ts';
import { blockListOf, contains, isLoopback } from '../settings.ts';

export interface Access {
  /** Resolves if the request may read. Throws RequestError. */
  check(request: IncomingMessage): Promise<void>;
}

/**
 * Whoever is on this machine. A page of another site that made a browser resolve its own name to this machine would have that name as its
 * host: DNS rebinding.
 */
export const loopbackAccess: Access = {
  async check(request) {
    if (!isLoopback(hostnameOf(request.headers.host)) || !isLoopback(request.socket.remoteAddress ?? '')) {
      throw new RequestError(
        'FORBIDDEN',
        'This server answers only to names of this machine.',
        'Open it as http://localhost or http://127.0.0.1, with the port of --page-address.',
      );
    }
  },
};

/** Without the port. */
const hostnameOf = (host = ''): string => host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');

const MAX_USER = 256;

/**
 * Whom the proxy lets through. Only the proxy may say who asks: anybody else could send the same header. Without addresses it is on this
 * machine. With them nobody else on this machine is believed: behind a sidecar of a mesh, or through a port-forward, everybody comes from there.
 */
export function proxyAccess(header: string, addresses: readonly string[]): Access {
  const proxies = blockListOf(addresses);
  const isProxy = (from: string) => (addresses.length === 0 ? isLoopback(from) : contains(proxies, from));
  const name = header.toLowerCase();
  return {
    async check(request) {
      if (!isProxy(request.socket.remoteAddress ?? '')) {
        throw new RequestError(
          'FORBIDDEN',
          'Requests are taken from the proxy only.',
          "Open the proxy's address, or add this one to --proxy-address.",
        );
      }
      // A proxy that adds the header to one of the client's does not say who asks.
      const [user = '', ...more] = request.headersDistinct[name] ?? [];
      if (user === '' || user.length > MAX_USER || more.length > 0) {
        throw new RequestError(
          'USER_UNKNOWN',
          'The proxy did not say who asks.',
          `Let the proxy set the header of --user-header (${header}) once, and drop what the client sent.`,
        );
      }
    },
  };
}
