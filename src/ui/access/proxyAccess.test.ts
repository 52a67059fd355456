/*
 * Access behind a proxy, by real requests, with an API server that answers what the test says.
 */
import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KubeUser } from '../../kube/client.ts';
import { type Mono, mono } from '../../protocol/units.ts';
import { RequestError } from '../requestError.ts';
import type { Access } from './access.ts';
import { proxyAccess, trustedProxyAccess } from './proxyAccess.ts';

const HERE = { userHeader: 'X-Forwarded-User', groupsHeader: 'X-Forwarded-Groups', addresses: [] };
const second = 1_000_000;
let now: Mono;
let may: (user: KubeUser) => Promise<boolean>;
let asked: KubeUser[];
let server: Server | undefined;

const api = {
  kube: {
    async mayUser(user: KubeUser) {
      asked.push(user);
      return may(user);
    },
  },
  log: { warn: () => undefined },
  now: () => now,
};

beforeEach(() => {
  now = mono(0);
  may = async () => true;
  asked = [];
});
afterEach(() => {
  server?.close();
  server = undefined;
});

/** Asks a server with this access: the status and the code of the refusal, or 200. */
async function start(access: Access) {
  server = createServer(async (incoming, response) => {
    const refusal = await access.check(incoming).then(
      () => null,
      (error: unknown) => error,
    );
    if (refusal instanceof RequestError) response.statusCode = refusal.status;
    else if (refusal !== null) throw refusal;
    response.end(refusal === null ? '' : refusal.code);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return async (headers: OutgoingHttpHeaders) => {
    const sent = request({ host: '127.0.0.1', port, headers, agent: false }).end();
    const [response] = await once(sent, 'response');
    const code = await text(response);
    return code === '' ? response.statusCode : [response.statusCode, code];
  };
}
const named = (user: string, groups?: string | string[]) => ({
  'x-forwarded-user': user,
  ...(groups === undefined ? {} : { 'x-forwarded-groups': groups }),
});

test('the user may read who may get plegreports with the groups that the proxy names', async () => {
  may = async ({ username, groups }) => username === 'ann' && groups.includes('on-call');
  const get = await start(proxyAccess(HERE, api));
  expect(await get(named('ann', 'dev, on-call,,'))).toBe(200);
  expect(await get(named('ann', 'dev'))).toEqual([403, 'FORBIDDEN']);
  expect(await get(named('ann'))).toEqual([403, 'FORBIDDEN']);
  expect(await get(named('bob', 'on-call'))).toEqual([403, 'FORBIDDEN']);
  expect(asked[0]).toEqual({
    username: 'ann',
    groups: ['system:authenticated', 'dev', 'on-call'],
    uid: '',
    extra: {},
  });
});

test('groups of a proxy that names none do not count, whoever sends them', async () => {
  const get = await start(proxyAccess({ ...HERE, groupsHeader: undefined }, api));
  expect(await get(named('ann', 'on-call'))).toBe(200);
  expect(asked.map(({ groups }) => groups)).toEqual([['system:authenticated']]);
});

test('nobody has a group of Kubernetes itself by a header', async () => {
  const get = await start(proxyAccess(HERE, api));
  await get(named('ann', 'system:masters,dev,system:nodes'));
  expect(asked.map(({ groups }) => groups)).toEqual([['system:authenticated', 'dev']]);
});

test('nobody has a name of Kubernetes itself by a header', async () => {
  const get = await start(proxyAccess(HERE, api));
  for (const user of [
    'system:kube-controller-manager',
    'system:serviceaccount:kube-system:namespace-controller',
  ])
    expect(await get(named(user))).toEqual([403, 'FORBIDDEN']);
  expect(asked).toEqual([]);
});

test('an answer is remembered for a minute, and is that of one user with the same groups', async () => {
  const get = await start(proxyAccess(HERE, api));
  for (const groups of ['a,b', 'b,a', 'b,a,b']) expect(await get(named('ann', groups))).toBe(200);
  expect(asked).toHaveLength(1);
  may = async () => false;
  now = mono(59 * second);
  expect(await get(named('ann', 'a,b'))).toBe(200);
  expect(await get(named('ann', 'a'))).toEqual([403, 'FORBIDDEN']);
  expect(await get(named('a', 'ann,b'))).toEqual([403, 'FORBIDDEN']);
  now = mono(60 * second);
  expect(await get(named('ann', 'a,b'))).toEqual([403, 'FORBIDDEN']);
});

test('while the API server is away nobody new is let in, and nobody is refused for it later', async () => {
  const get = await start(proxyAccess(HERE, api));
  expect(await get(named('ann'))).toBe(200);
  may = () => Promise.reject(new Error('away'));
  expect(await get(named('ann'))).toBe(200);
  expect(await get(named('bob'))).toEqual([503, 'ACCESS_UNKNOWN']);
  may = async () => true;
  expect(await get(named('bob'))).toBe(200);
});

/** As the bytes of UTF-8, which is what a header is. */
const bytes = (name: string) => Buffer.from(name, 'utf8').toString('latin1');
const NO_NAMES = ['x'.repeat(257), 'a\tb', bytes('a\u0085b'), bytes('a\u202eb'), bytes('a\u2028b'), 'a\xffb'];

test.each([trustedProxyAccess(HERE), proxyAccess(HERE, api)])(
  'the proxy has to name the user once, and by a name',
  async (access) => {
    const get = await start(access);
    expect(await get(named('ann'))).toBe(200);
    expect(await get({})).toEqual([401, 'USER_UNKNOWN']);
    for (const user of ['', ['ann', 'bob'], ...NO_NAMES]) {
      expect(await get({ 'x-forwarded-user': user })).toEqual([401, 'USER_UNKNOWN']);
    }
  },
);

test('the proxy has to name the groups once, and by not too many names', async () => {
  const get = await start(proxyAccess(HERE, api));
  const many = (count: number) => Array.from({ length: count }, (_, n) => `g${n}`).join();
  expect(await get(named('ann', many(200)))).toBe(200);
  for (const groups of [many(201), ['a', 'b'], ...NO_NAMES]) {
    expect(await get(named('ann', groups))).toEqual([401, 'USER_UNKNOWN']);
  }
  expect(asked).toHaveLength(1);
});

test('a name in another script is asked for as it is', async () => {
  const get = await start(proxyAccess(HERE, api));
  expect(await get(named(bytes('Zoë'), bytes('技术')))).toBe(200);
  expect(asked[0]).toMatchObject({ username: 'Zoë', groups: ['system:authenticated', '技术'] });
});

test('where the proxy has addresses, nobody else on this machine may say who asks', async () => {
  const others = await start(trustedProxyAccess({ ...HERE, addresses: ['10.0.0.0/8', '::1'] }));
  expect(await others(named('ann'))).toEqual([403, 'FORBIDDEN']);
  server?.close();
  const own = await start(trustedProxyAccess({ ...HERE, addresses: ['10.0.0.0/8', '127.0.0.1'] }));
  expect(await own(named('ann'))).toBe(200);
});
