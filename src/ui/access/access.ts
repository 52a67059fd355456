/*
 * Access to the page. One of four kinds: src/ui/settings.ts says when which applies.
 */
import type { IncomingMessage } from 'node:http';
import { RequestError } from '../requestError.ts';
import { isLoopback } from '../settings.ts';

export interface Access {
  /** Resolves if the request may read. Throws RequestError. */
  check(request: IncomingMessage): Promise<void>;
}

/**
 * Access from this machine. A page of another site that made a browser resolve its own name to this machine would have that name as its host: DNS
 * rebinding.
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
