/*
 * Access behind a proxy that logs people in: it names the user, and the groups of the user, in headers.
 *
 * Only the proxy may say who asks: anybody else could send the same headers. Without addresses it is on this machine. With them nobody else
 * on this machine is believed: behind a sidecar of a mesh, or through a port-forward, everybody comes from there.
 */
import type { IncomingMessage } from 'node:http';
import type { KubeClient } from '../../kube/client.ts';
import { RequestError } from '../requestError.ts';
import { blockListOf, contains, isLoopback } from '../settings.ts';
import type { Access } from './access.ts';
import { type AccessReviewOptions, accessReviews, reviewUser } from './accessReviews.ts';

interface ProxySettings {
  readonly userHeader: string;
  /** Undefined: the proxy names no groups. */
  readonly groupsHeader?: string | undefined;
  readonly addresses: readonly string[];
}

type Options = AccessReviewOptions<Pick<KubeClient, 'mayUser'>>;

interface ProxyUser {
  readonly username: string;
  readonly groups: readonly string[];
}

const MAX_NAME = 256;
const MAX_GROUPS = 200;
/** The prefix of the users and groups of Kubernetes itself: no login elsewhere gives one. */
const OF_KUBERNETES = 'system:';
/** As the API server adds for a user whom it knows. */
const EVERY_USER = `${OF_KUBERNETES}authenticated`;

/** Asks the API server whether the user may read. */
export function proxyAccess(proxy: ProxySettings, { kube, ...options }: Options): Access {
  const may = accessReviews(options);
  const userOf = proxyUsers(proxy);
  return {
    async check(request) {
      const { username, groups } = userOf(request);
      if (username.startsWith(OF_KUBERNETES)) {
        throw new RequestError(
          'FORBIDDEN',
          `${username} is a user of Kubernetes itself, and no proxy can name one.`,
          'Let the proxy name its users otherwise, with a prefix for example.',
        );
      }
      await may(JSON.stringify([username, ...groups]), () =>
        reviewUser(kube, { username, groups, uid: '', extra: {} }),
      );
    },
  };
}

/** Everybody whom the proxy lets through may read. */
export function trustedProxyAccess(proxy: ProxySettings): Access {
  const userOf = proxyUsers(proxy);
  return {
    async check(request) {
      userOf(request);
    },
  };
}

function proxyUsers({
  userHeader,
  groupsHeader,
  addresses,
}: ProxySettings): (request: IncomingMessage) => ProxyUser {
  const proxies = blockListOf(addresses);
  const isProxy = (from: string) => (addresses.length === 0 ? isLoopback(from) : contains(proxies, from));
  return (request) => {
    if (!isProxy(request.socket.remoteAddress ?? '')) {
      throw new RequestError(
        'FORBIDDEN',
        'Requests are taken from the proxy only.',
        "Open the proxy's address, or add this one to --proxy-address.",
      );
    }
    const username = textOf(request, userHeader);
    if (username === undefined || !isName(username)) {
      throw new RequestError(
        'USER_UNKNOWN',
        'The proxy did not say who asks.',
        `Let the proxy set the header of --user-header (${userHeader}) once, and drop what the client sent.`,
      );
    }
    return { username, groups: groupsHeader === undefined ? [EVERY_USER] : groupsIn(request, groupsHeader) };
  };
}

/** Without groups of Kubernetes itself, such as system:masters. */
function groupsIn(request: IncomingMessage, header: string): readonly string[] {
  const text = request.headersDistinct[header.toLowerCase()] === undefined ? '' : textOf(request, header);
  const names = text?.split(',').flatMap((name) => name.trim() || []);
  if (names === undefined || names.length > MAX_GROUPS || !names.every(isName)) {
    throw new RequestError(
      'USER_UNKNOWN',
      'The proxy did not say which groups the user has.',
      `Let the proxy set the header of --groups-header (${header}) once, with at most ${MAX_GROUPS} names separated by commas, and drop what the client sent.`,
    );
  }
  const own = names.filter((name) => !name.startsWith(OF_KUBERNETES));
  return [...new Set([EVERY_USER, ...own.toSorted()])];
}

/** Undefined if it was not sent once: a proxy that adds the header to one of the client's does not say who asks. */
function textOf(request: IncomingMessage, header: string): string | undefined {
  const [value, ...more] = request.headersDistinct[header.toLowerCase()] ?? [];
  if (value === undefined || more.length > 0) return undefined;
  // The bytes are read as Latin-1, and proxies send UTF-8.
  const text = Buffer.from(value, 'latin1').toString('utf8');
  return text.includes('\ufffd') ? undefined : text;
}

/** Without control characters, and what turns or hides the text around it. */
const isName = (text: string): boolean =>
  text !== '' && text.length <= MAX_NAME && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text);
