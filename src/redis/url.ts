/*
 * Parses `--redis-url`: where Redis is and how to log in.
 *
 *   redis://[user:password@]host:port                                    one server
 *   redis+cluster://[user:password@]host:port,host:port                  a Redis Cluster, by some of its nodes
 *   redis+sentinel://[user:password@]host:port,host:port/master          the master of that name, by its Sentinels
 *
 * The database is the first, 0: the user of agents may select none.
 *
 * With `rediss` instead of `redis` connections use TLS. User and password are those of Redis; the password of the Sentinels, if they
 * have their own, is `?sentinelPassword=`.
 */
import { BadValue } from '../platform/settings.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Credentials. Without a user name they are the default user's. */
export interface Login {
  readonly username?: string;
  readonly password?: string;
}

interface PlaceAccess {
  readonly login: Login;
  readonly tls: boolean;
}
interface ServerPlace extends PlaceAccess {
  readonly kind: 'server';
  readonly address: Address;
}
export interface ClusterPlace extends PlaceAccess {
  readonly kind: 'cluster';
  readonly nodes: readonly Address[];
}
export interface SentinelPlace extends PlaceAccess {
  readonly kind: 'sentinel';
  readonly sentinels: readonly Address[];
  readonly sentinelLogin: Login;
  /** The name under which the Sentinels know the master. */
  readonly master: string;
}
export type RedisPlace = ServerPlace | ClusterPlace | SentinelPlace;

const HINTS = {
  server: 'redis://[:password@]host:port',
  cluster: 'redis+cluster://[:password@]host:port,host:port',
  sentinel: 'redis+sentinel://[:password@]host:port,host:port/master',
} as const;
const PORTS = { server: 6379, cluster: 6379, sentinel: 26_379 } as const;
type PlaceKind = RedisPlace['kind'];

const URL_SHAPE = /^(rediss?)(?:\+(cluster|sentinel))?:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;

/** Checks the value of `--redis-url` and returns it unchanged. Throws {@link BadValue}. */
export const redisUrl = (raw: string): string => {
  readRedisUrl(raw);
  return raw;
};

/** Throws {@link BadValue}, which says what is wrong without repeating the value: it may hold a password. */
export function readRedisUrl(raw: string): RedisPlace {
  const match = /\s/.test(raw) ? null : URL_SHAPE.exec(raw);
  if (match === null) throw new BadValue(complaintAbout(raw));
  const [, scheme, variant, authority = '', path = '', query = ''] = match;
  const kind = kindOf(variant);
  const at = authority.lastIndexOf('@');
  const user = authority.slice(0, Math.max(0, at));
  const addresses = addressesOf(kind, authority.slice(at + 1));
  if (kind !== 'server' && user.includes('@'))
    throw new BadValue(`must name user and password once, before the first host: ${HINTS[kind]}`);
  if (query !== '' && kind !== 'sentinel') throw new BadValue(`must not have a ?: ${HINTS[kind]}`);
  const place = { login: loginOf(user), tls: scheme?.toLowerCase() === 'rediss' };
  switch (kind) {
    case 'server':
      expectFirstDatabase(kind, path);
      return { ...place, kind, address: onlyOne(addresses) };
    case 'cluster':
      expectFirstDatabase(kind, path);
      return { ...place, kind, nodes: addresses };
    case 'sentinel': {
      const [master = '', ...db] = path.split('/');
      if (!/^[A-Za-z0-9._-]+$/.test(master))
        throw new BadValue(`must name the master that the Sentinels watch: ${HINTS[kind]}`);
      expectFirstDatabase(kind, db.join('/'));
      return { ...place, kind, sentinels: addresses, sentinelLogin: sentinelLoginOf(query), master };
    }
  }
}

function complaintAbout(raw: string): string {
  if (/\s/.test(raw) || !/^[a-z][a-z0-9+.-]*:/i.test(raw)) return `must be a URL, ${HINTS.server}`;
  if (/^rediss?(\+(cluster|sentinel))?:/i.test(raw)) return `must be a URL, ${HINTS.server}`;
  return `must begin with redis://, redis+cluster:// or redis+sentinel://, or with rediss for TLS: ${HINTS.server}`;
}

function kindOf(variant: string | undefined): PlaceKind {
  const kind = variant?.toLowerCase();
  return kind === 'cluster' || kind === 'sentinel' ? kind : 'server';
}

function addressesOf(kind: PlaceKind, hosts: string): Address[] {
  if (hosts === '') throw new BadValue(`must name a host: ${HINTS[kind]}`);
  return hosts.split(',').map((each) => {
    // The scheme of a URL that is known to have hosts and ports; ours is not.
    const url = URL.canParse(`redis://${each}`) ? new URL(`redis://${each}`) : null;
    if (url === null || url.hostname === '') throw new BadValue(`must be a URL, ${HINTS[kind]}`);
    return {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? PORTS[kind] : Number(url.port),
    };
  });
}

function onlyOne(addresses: readonly Address[]): Address {
  const [address] = addresses;
  if (address === undefined || addresses.length > 1)
    throw new BadValue(`must name one host; several are for redis+cluster:// and redis+sentinel://`);
  return address;
}

function loginOf(user: string): Login {
  const colon = user.indexOf(':');
  const username = decoded(colon < 0 ? user : user.slice(0, colon));
  const password = decoded(colon < 0 ? '' : user.slice(colon + 1));
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function sentinelLoginOf(query: string): Login {
  if (query === '') return {};
  const match = /^sentinelPassword=([^&]+)$/.exec(query);
  if (match === null) throw new BadValue('must have nothing but sentinelPassword behind its ?');
  return { password: decoded(match[1] ?? '') };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new BadValue('must have % written as %25 in its user and password');
  }
}

function expectFirstDatabase(kind: PlaceKind, text: string): void {
  if (!/^0?$/.test(text))
    throw new BadValue(`must not name a database, plegwatch uses the first one: ${HINTS[kind]}`);
}
