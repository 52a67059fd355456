import { expect, test } from 'vitest';
import { accessKindOf, blockListOf, contains, UI_SETTINGS } from './settings.ts';

const NONE = {
  ...{ cluster: undefined, kubeconfig: undefined },
  ...{ userHeader: undefined, groupsHeader: undefined, proxyAddress: undefined },
  authorization: 'api-server' as const,
  pageAddress: '127.0.0.1:9466',
};

test.each(['127.0.0.1:9466', 'localhost:0', '[::1]:9466'])(
  'without a kubeconfig and a proxy the page is served on the loopback address %s',
  (pageAddress) => {
    expect(accessKindOf({ ...NONE, pageAddress }, false)).toBe('loopback');
  },
);

test.each([':9466', '0.0.0.0:9466', '[::]:9466', '10.0.0.7:9466', 'localhost.example:9466'])(
  'without a kubeconfig and a proxy the page is not served on %s, which other machines reach',
  (pageAddress) => {
    expect(() => accessKindOf({ ...NONE, pageAddress }, false)).toThrow(
      expect.objectContaining({ code: 'UI_UNPROTECTED' }),
    );
  },
);

test('the API server is asked in a pod or with a kubeconfig, for one cluster only', () => {
  const one = { ...NONE, cluster: ['prod'], pageAddress: ':9466' };
  expect(accessKindOf(one, true)).toBe('token');
  expect(accessKindOf({ ...one, kubeconfig: 'config' }, false)).toBe('token');
  for (const cluster of [undefined, ['prod', 'test']]) {
    expect(() => accessKindOf({ ...one, cluster }, true)).toThrow(/must name one cluster/);
  }
});

test('behind a proxy the API server says who may read, unless everybody may whom the proxy lets through', () => {
  const proxy = { ...NONE, userHeader: 'X-Forwarded-User', pageAddress: ':9466' };
  const one = { ...proxy, cluster: ['prod'] };
  expect(accessKindOf(one, true)).toBe('proxy');
  expect(accessKindOf({ ...one, kubeconfig: 'config' }, false)).toBe('proxy');
  for (const cluster of [undefined, ['prod', 'test']]) {
    expect(() => accessKindOf({ ...proxy, cluster }, true)).toThrow(/must name one cluster/);
  }
  // Also on a loopback address.
  for (const pageAddress of [':9466', '127.0.0.1:9466']) {
    expect(() => accessKindOf({ ...one, pageAddress }, false)).toThrow(
      expect.objectContaining({ code: 'UI_UNPROTECTED' }),
    );
  }
  for (const inPod of [true, false]) {
    expect(accessKindOf({ ...proxy, authorization: 'proxy' }, inPod)).toBe('trusted-proxy');
  }
});

test.each([
  { proxyAddress: ['10.0.0.0/8'] },
  { groupsHeader: 'X-Forwarded-Groups' },
  { authorization: 'proxy' as const },
])('%j needs a proxy that says who asks', (setting) => {
  expect(() => accessKindOf({ ...NONE, ...setting }, true)).toThrow(/needs --user-header/);
});

test('addresses of a proxy are addresses or ranges', () => {
  const { read } = UI_SETTINGS.proxyAddress;
  expect(read('10.0.0.7, 10.1.0.0/16,fd00::/8')).toEqual(['10.0.0.7', '10.1.0.0/16', 'fd00::/8']);
  for (const raw of ['proxy', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '::/129']) {
    expect(() => read(raw)).toThrow(/must be addresses/);
  }
});

test('an IPv4 address is recognised on a socket for both families', () => {
  const listed = blockListOf(['10.1.0.0/16', 'fd00::7']);
  const addresses = ['10.1.2.3', '::ffff:10.1.2.3', 'fd00::7', '10.2.0.1', '::ffff:10.2.0.1', 'fd00::8', ''];
  expect(addresses.map((address) => contains(listed, address))).toEqual([
    ...[true, true, true],
    ...[false, false, false, false],
  ]);
});
