import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { type Answerer, json, type ScriptedApi, scriptedApi } from '../../../test/support/fakeApiServer.ts';
import { createKubeClient, type KubeClient } from './client.ts';
import { NODES, podsOf } from './object.ts';
import { MAX_ANSWER_BYTES } from './transport.ts';

const open: { api: ScriptedApi; kube: KubeClient }[] = [];
afterEach(async () => {
  for (const { api, kube } of open.splice(0)) {
    kube.close();
    await api.stop();
  }
});

async function clientOf(answer: Answerer) {
  const api = await scriptedApi(answer);
  const kube = await createKubeClient({ kubeconfig: api.kubeconfig });
  open.push({ api, kube });
  return { api, kube };
}

test('a redirect is not followed', async () => {
  const { api, kube } = await clientOf((_, response) => json(response, 302, {}, { location: '/elsewhere' }));
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ name: 'KubeStatusError', code: 302 });
  expect(api.asked).toEqual(['/api/v1/nodes/a']);
});

test('an answer that is too large is broken off', async () => {
  const { kube } = await clientOf((_, response) => {
    response.writeHead(200);
    response.end('x'.repeat(MAX_ANSWER_BYTES + 1));
  });
  await expect(kube.list(NODES)).rejects.toThrow(/larger than/);
});

test('an object that is too large is refused as such: the server is well', async () => {
  const { kube } = await clientOf((_, response) => response.end('x'.repeat(4 * 1024 * 1024 + 1)));
  await expect(kube.get(podsOf('shop'), 'a')).rejects.toMatchObject({
    name: 'KubeStatusError',
    reason: 'TooLarge',
  });
});

test('an object of a namespace has its path, whatever the namespace is called', async () => {
  const { api, kube } = await clientOf((_, response) => json(response, 404, {}));
  await kube.get(podsOf('shop'), 'cart');
  await kube.get(podsOf('../x'), 'cart');
  expect(api.asked).toEqual(['/api/v1/namespaces/shop/pods/cart', '/api/v1/namespaces/..%2Fx/pods/cart']);
});

test('an answer that is not what it should be is refused at the door', async () => {
  const { kube } = await clientOf((_, response) => json(response, 200, { items: [{ metadata: 'none' }] }));
  await expect(kube.list(NODES)).rejects.toMatchObject({ reason: 'Unreadable' });
});

test('Retry-After of a 429 is told in milliseconds', async () => {
  const { kube } = await clientOf((_, response) =>
    json(response, 429, { message: 'slow' }, { 'retry-after': '2' }),
  );
  await expect(kube.list(NODES)).rejects.toMatchObject({ code: 429, retryAfterMs: 2000 });
});

test('a name cannot leave its path', async () => {
  const { api, kube } = await clientOf((_, response) => json(response, 404, {}));
  expect(await kube.get(NODES, '../secrets?x')).toBeUndefined();
  expect(api.asked).toEqual(['/api/v1/nodes/..%2Fsecrets%3Fx']);
});

test('a token that was rotated is read again after a 401', async () => {
  const { api, kube } = await clientOf((request, response) => {
    const accepted = request.headers.authorization === 'Bearer two';
    if (!accepted)
      writeFileSync(api.kubeconfig, readFileSync(api.kubeconfig, 'utf8').replace('"one"', '"two"'));
    json(response, accepted ? 200 : 401, { metadata: { name: 'a' } });
  });
  expect(await kube.get(NODES, 'a')).toMatchObject({ metadata: { name: 'a' } });
});

test('a 401 that stays is KUBE_REFUSED', async () => {
  const { api, kube } = await clientOf((_, response) => json(response, 401, { message: 'Unauthorized' }));
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ code: 'KUBE_REFUSED' });
  expect(api.asked).toHaveLength(2);
});

test('a server that is not there is KUBE_UNREACHABLE, and names no secret', async () => {
  const { api, kube } = await clientOf(() => undefined);
  await api.stop();
  await expect(kube.get(NODES, 'a')).rejects.toMatchObject({ code: 'KUBE_UNREACHABLE' });
});

test('a kubeconfig that cannot be read is KUBE_CONFIG and names the setting', async () => {
  await expect(createKubeClient({ kubeconfig: '/nowhere/kubeconfig' })).rejects.toMatchObject({
    code: 'KUBE_CONFIG',
    message: expect.stringContaining('--kubeconfig /nowhere/kubeconfig'),
  });
});
