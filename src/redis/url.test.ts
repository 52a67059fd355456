import { expect, test } from 'vitest';
import { BadValue } from '../platform/settings.ts';
import { type RedisPlace, readRedisUrl } from './url.ts';

const plain = { login: {}, tls: false } as const;

test.each<[string, RedisPlace]>([
  ['redis://h', { ...plain, kind: 'server', address: { host: 'h', port: 6379 } }],
  ['REDIS://h:1/', { ...plain, kind: 'server', address: { host: 'h', port: 1 } }],
  [
    'rediss://u%40:p%2Fw@[::1]:7/0',
    {
      kind: 'server',
      address: { host: '::1', port: 7 },
      login: { username: 'u@', password: 'p/w' },
      tls: true,
    },
  ],
  [
    'redis://:a@b@h',
    { kind: 'server', address: { host: 'h', port: 6379 }, login: { password: 'a@b' }, tls: false },
  ],
  [
    'redis+cluster://:p@a,b:7,[::1]:8',
    {
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 7 },
        { host: '::1', port: 8 },
      ],
      login: { password: 'p' },
      tls: false,
    },
  ],
  ['rediss+cluster://a/0', { kind: 'cluster', nodes: [{ host: 'a', port: 6379 }], login: {}, tls: true }],
  [
    'redis+sentinel://u:p@a,b:7/my-master/0?sentinelPassword=s%26',
    {
      kind: 'sentinel',
      sentinels: [
        { host: 'a', port: 26_379 },
        { host: 'b', port: 7 },
      ],
      sentinelLogin: { password: 's&' },
      master: 'my-master',
      login: { username: 'u', password: 'p' },
      tls: false,
    },
  ],
])('%s is read', (raw, place) => {
  expect(readRedisUrl(raw)).toEqual(place);
});

test.each([
  ['localhost:6379', /^must begin with redis:\/\/, redis\+cluster:\/\/ or redis\+sentinel:\/\//],
  ['http://:secret@h', /^must begin with/],
  ['redis+clusters://h', /^must begin with/],
  ['h', /^must be a URL/],
  ['redis:h', /^must be a URL/],
  ['redis://h#x', /^must be a URL/],
  ['redis://a b', /^must be a URL/],
  ['redis://h:99999', /^must be a URL/],
  ['redis+cluster://a:1,', /^must be a URL, redis\+cluster:/],
  ['redis+cluster://a:1,b:x', /^must be a URL, redis\+cluster:/],
  ['redis://', /^must name a host/],
  ['redis+cluster://:secret@', /^must name a host: redis\+cluster:/],
  ['redis://:secret@a,b', /^must name one host; several are for redis\+cluster/],
  ['redis://h/1', /^must not name a database, plegwatch uses the first one/],
  ['redis://:secret%@h', /^must have % written as %25/],
  ['redis://h?x=secret', /^must not have a \?/],
  ['redis+cluster://a,b/1', /^must not name a database/],
  ['redis+cluster://:secret@a,:secret@b', /^must name user and password once/],
  ['redis+sentinel://a,b', /^must name the master/],
  ['redis+sentinel://a,b/m/x', /^must not name a database/],
  ['redis+sentinel://a,b/m?password=secret', /^must have nothing but sentinelPassword/],
])('%s is refused, and the error never repeats its password', (raw, complaint) => {
  expect(() => readRedisUrl(raw)).toThrow(BadValue);
  expect(() => readRedisUrl(raw)).toThrow(complaint);
  expect(() => readRedisUrl(raw)).not.toThrow(/secret/);
});
