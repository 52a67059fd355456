import { readFileSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { type FakeApiServer, respondJson, startFakeApiServer } from '../../test/support/fakeApiServer.ts';
import { until } from '../../test/support/waitFor.ts';
import { createKubeClient, type KubeClient } from './client.ts';
import { NODES, podsOf } from './object.ts';
import { MAX_RESPONSE_BYTES } from './transport.ts';

const BOOKMARK = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '2' } } };

const open: { api: FakeApiServer; kube: KubeClient }[] = [];
afterEach(async () => {
  for (const { api, kube } of open.splice(0)) {
    kube.close();
    await api.stop();
  }
});

async function clientOf(respond: RequestListener) {
  const api = await startFakeApiServer(respond);
  const kube = await createKubeClient({ kubeconfig: api.kubeconfig });
  open.push({ api, kube });
  return { api, kube };
}

test('a redirect is not followed', async () => {
  const { api, kube } = await clientOf((_, response) =>
    respondJson(response, 302, {}, { location: '/elsewhere' }),
  );
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ name: 'KubeStatusError', code: 302 });
  expect(api.requests).toEqual(['/api/v1/nodes/a']);
});

test('a response that is too large is aborted', async () => {
  const { kube } = await clientOf((_, response) => {
    response.writeHead(200);
    response.end('x'.repeat(MAX_RESPONSE_BYTES + 1));
  });
  await expect(kube.list(NODES)).rejects.toThrow(/larger than/);
});

test('an object that is too large is a KubeStatusError TooLarge, because the server is reachable', async () => {
  const { kube } = await clientOf((_, response) => response.end('x'.repeat(4 * 1024 * 1024 + 1)));
  await expect(kube.get(podsOf('shop'), 'a')).rejects.toMatchObject({
    name: 'KubeStatusError',
    reason: 'TooLarge',
  });
});

test('a namespace is escaped in the path of an object', async () => {
  const { api, kube } = await clientOf((_, response) => respondJson(response, 404, {}));
  await kube.get(podsOf('shop'), 'cart');
  await kube.get(podsOf('../x'), 'cart');
  expect(api.requests).toEqual(['/api/v1/namespaces/shop/pods/cart', '/api/v1/namespaces/..%2Fx/pods/cart']);
});

test('a response that does not match its schema is a KubeStatusError Unreadable', async () => {
  const { kube } = await clientOf((_, response) =>
    respondJson(response, 200, { items: [{ metadata: 'none' }] }),
  );
  await expect(kube.list(NODES)).rejects.toMatchObject({ reason: 'Unreadable' });
});

test('the error of a 429 has its Retry-After in milliseconds', async () => {
  const { kube } = await clientOf((_, response) =>
    respondJson(response, 429, { message: 'slow' }, { 'retry-after': '2' }),
  );
  await expect(kube.list(NODES)).rejects.toMatchObject({ code: 429, retryAfterMs: 2000 });
});

test('a name is escaped in the path of an object', async () => {
  const { api, kube } = await clientOf((_, response) => respondJson(response, 404, {}));
  expect(await kube.get(NODES, '../secrets?x')).toBeUndefined();
  expect(api.requests).toEqual(['/api/v1/nodes/..%2Fsecrets%3Fx']);
});

test('a rotated token is read again after a 401', async () => {
  const { api, kube } = await clientOf((request, response) => {
    const accepted = request.headers.authorization === 'Bearer two';
    if (!accepted)
      writeFileSync(api.kubeconfig, readFileSync(api.kubeconfig, 'utf8').replace('"one"', '"two"'));
    respondJson(response, accepted ? 200 : 401, { metadata: { name: 'a' } });
  });
  expect(await kube.get(NODES, 'a')).toMatchObject({ metadata: { name: 'a' } });
});

test('a request under way goes on while the certificates are replaced', async () => {
  let answerHeld = () => {};
  const { api, kube } = await clientOf((request, response) => {
    const answer = () => respondJson(response, 200, { metadata: { name: 'a' } });
    if (request.url?.endsWith('/held')) answerHeld = answer;
    else if (request.url?.endsWith('/renewed') && requestsFor('/renewed') === 1) {
      const config = readFileSync(api.kubeconfig, 'utf8');
      writeFileSync(
        api.kubeconfig,
        config.replace('"server"', '"certificate-authority-data":"bmV3","server"'),
      );
      respondJson(response, 401, {});
    } else answer();
  });
  const requestsFor = (end: string) => api.requests.filter((path) => path.endsWith(end)).length;
  const held = kube.get(NODES, 'held');
  await until(() => requestsFor('/held') === 1);
  await kube.get(NODES, 'renewed');
  expect(requestsFor('/renewed')).toBe(2);
  answerHeld();
  expect(await held).toMatchObject({ metadata: { name: 'a' } });
});

test('a second 401 is KUBE_REFUSED', async () => {
  const { api, kube } = await clientOf((_, response) =>
    respondJson(response, 401, { message: 'Unauthorized' }),
  );
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ code: 'KUBE_REFUSED' });
  expect(api.requests).toHaveLength(2);
});

test('a watch that is accepted goes on although the credentials can no longer be read', async () => {
  let accept = () => {};
  const { api, kube } = await clientOf((request, response) => {
    if (!request.url?.includes('watch=true')) return respondJson(response, 401, {});
    accept = () => response.writeHead(200).write(`${JSON.stringify(BOOKMARK)}\n`);
  });
  const watch = kube.watch(NODES, { resourceVersion: '1', timeoutSeconds: 60 });
  const first = watch.next();
  await until(() => api.requests.length === 1);
  writeFileSync(api.kubeconfig, 'none');
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ code: 'KUBE_CONFIG' });
  accept();
  expect((await first).value).toMatchObject({ type: 'BOOKMARK' });
  await watch.return(undefined);
});

test('a stopped server is KUBE_UNREACHABLE', async () => {
  const { api, kube } = await clientOf(() => undefined);
  await api.stop();
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ code: 'KUBE_UNREACHABLE' });
});

test('an unreadable kubeconfig is KUBE_CONFIG, and the message names the setting', async () => {
  await expect(createKubeClient({ kubeconfig: '/nowhere/kubeconfig' })).rejects.toMatchObject({
    code: 'KUBE_CONFIG',
    message: expect.stringContaining('--kubeconfig /nowhere/kubeconfig'),
  });
});
