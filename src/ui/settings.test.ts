import { expect, test } from 'vitest';
import { accessKindOf, blockListOf, contains, UI_SETTINGS } from './settings.ts';

const NONE = {
  ...{ cluster: undefined, kubeconfig: undefined, userHeader: undefined, proxyAddress: undefined },
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

test('a proxy takes precedence over the API server, and its addresses need its header', () => {
  const userHeader = 'X-Forwarded-User';
  expect(accessKindOf({ ...NONE, userHeader, pageAddress: ':9466' }, true)).toBe('proxy');
  const proxyAddress = ['10.0.0.0/8'];
  expect(() => accessKindOf({ ...NONE, proxyAddress }, true)).toThrow(/needs --user-header/);
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
