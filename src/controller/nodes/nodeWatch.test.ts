import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { type FakeApiServer, respondJson, startFakeApiServer } from '../../../test/support/fakeApiServer.ts';
import { until } from '../../../test/support/waitFor.ts';
import { createKubeClient, type KubeClient } from '../../kube/client.ts';
import { type NodeWatch, startNodeWatch } from './nodeWatch.ts';

const log = pino({ level: 'silent' });
const node = (name: string, uid: string, resourceVersion: string) => ({
  metadata: { name, uid, resourceVersion },
});
const listOf = (resourceVersion: string, ...items: object[]) => ({ metadata: { resourceVersion }, items });

const NO_INFO = { labels: {}, osImage: '', kernelVersion: '' };

type CannedResponse = (response: ServerResponse) => void;
const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

let api: FakeApiServer | undefined;
let kube: KubeClient | undefined;
let watch: NodeWatch | undefined;
afterEach(async () => {
  await watch?.stop();
  kube?.close();
  await api?.stop();
});

/** A Node with a Ready condition. */
const withReady = (name: string, resourceVersion: string, ready: object) => ({
  ...node(name, `u-${name}`, resourceVersion),
  status: {
    conditions: [
      { type: 'DiskPressure', status: 'False' },
      { type: 'Ready', ...ready },
    ],
  },
});

interface WatchingOptions {
  readonly relistMs?: number;
  readonly onMissed?: () => void;
}

/** Watches an API server that sends these responses to lists and watches, in order; the last of each is repeated. */
async function watching(
  lists: CannedResponse[],
  watches: CannedResponse[],
  { relistMs = 3_600_000, onMissed = () => undefined }: WatchingOptions = {},
): Promise<{ changes: string[] }> {
  api = await startFakeApiServer((request, response) => {
    const responses = request.url?.includes('watch=true') ? watches : lists;
    const respond = responses.length > 1 ? responses.shift() : responses[0];
    respond?.(response);
  });
  kube = await createKubeClient({ kubeconfig: api.kubeconfig });
  watch = startNodeWatch({ kube, log, backoff: { firstMs: 5, maxMs: 20 }, relistMs, onMissed });
  const changes: string[] = [];
  watch.onChange((name, present, before) =>
    changes.push(`${name} ${before?.uid ?? '-'} ${present?.uid ?? '-'}`),
  );
  return { changes };
}

const reply =
  (status: number, body: object = {}): CannedResponse =>
  (response) =>
    respondJson(response, status, body);
const stream =
  (...lines: string[]): CannedResponse =>
  (response) => {
    response.writeHead(200);
    response.write(lines.join(''));
  };
const reset: CannedResponse = (response) => response.destroy();
const ending =
  (...lines: string[]): CannedResponse =>
  (response) => {
    response.writeHead(200);
    response.end(lines.join(''));
  };

const watchRequests = () => (api?.requests ?? []).filter((url) => url.includes('watch=true'));
const watchedVersions = () =>
  watchRequests().map((url) => new URL(url, 'http://x').searchParams.get('resourceVersion'));

test('Nodes are listed once, and then follow the watch', async () => {
  const { changes } = await watching(
    [reply(200, listOf('10', node('a', 'u1', '5'), node('b', 'u2', '6')))],
    [
      stream(
        event('MODIFIED', node('a', 'u1', '11')),
        event('DELETED', node('b', 'u2', '12')),
        event('ADDED', node('c', 'u3', '13')),
        event('BOOKMARK', node('', '', '14')),
      ),
    ],
  );
  await until(() => changes.length === 4);
  expect(changes).toEqual(['a - u1', 'b - u2', 'b u2 -', 'c - u3']);
  expect(watch?.synced).toBe(true);
  expect(watch?.get('c')).toEqual({
    uid: 'u3',
    createdAt: null,
    labels: {},
    info: NO_INFO,
    ready: null,
    published: [],
  });
});

test('a list has several pages, and starts again when a page expires', async () => {
  const first = { metadata: { resourceVersion: '10', continue: 'more' }, items: [node('a', 'u1', '5')] };
  await watching(
    [reply(200, first), reply(410), reply(200, first), reply(200, listOf('10', node('b', 'u2', '6')))],
    [stream()],
  );
  await until(() => watch?.synced);
  expect([...(watch?.names() ?? [])]).toEqual(['a', 'b']);
});

test.each([
  ['a 429', reply(429)],
  ['a 500', reply(500)],
  ['a reset', reset],
  ['a 403', reply(403, { message: 'no' })],
  ['a line that is not JSON', ending('<html>\n')],
])('after %s, a watch backs off and continues from the last version received', async (_, fault) => {
  const { changes } = await watching(
    [reply(200, listOf('10'))],
    [ending(event('BOOKMARK', node('', '', '20'))), fault, stream(event('ADDED', node('a', 'u1', '21')))],
  );
  await until(() => changes.length === 1);
  expect(watchedVersions()).toEqual(['10', '20', '20']);
  expect((api?.requests ?? []).length).toBe(4);
});

test.each([
  ['the status of the response', reply(410)],
  ['an event of the watch', stream(event('ERROR', { code: 410, reason: 'Expired', message: 'too old' }))],
])(
  'a version that is too old, according to %s, leads to a new list, which shows deleted and replaced Nodes',
  async (_, expired) => {
    const { changes } = await watching(
      [
        reply(200, listOf('10', node('a', 'u1', '5'), node('b', 'u2', '6'))),
        reply(200, listOf('30', node('b', 'u9', '25'))),
      ],
      [expired, stream()],
    );
    await until(() => changes.length === 4 && watchedVersions().length >= 2);
    expect(changes.slice(2)).toEqual(['a u1 -', 'b u2 u9']);
    expect(watchedVersions().slice(0, 2)).toEqual(['10', '30']);
  },
);

test('a list that fails is retried, and the watch has its error meanwhile', async () => {
  let fails = true;
  await watching(
    [
      (response) =>
        fails ? reply(500, { message: 'etcd is away' })(response) : reply(200, listOf('10'))(response),
    ],
    [stream()],
  );
  await until(() => watch?.error?.includes('etcd is away'));
  expect(watch?.synced).toBe(false);
  fails = false;
  await until(() => watch?.synced);
  expect(watch?.error).toBeNull();
});

test('an accepted watch clears the error before any event', async () => {
  let wasSeen = false;
  const answer: CannedResponse = (response) => {
    if (wasSeen) stream()(response);
    else reply(500, { message: 'etcd is away' })(response);
  };
  await watching([reply(200, listOf('10'))], [answer]);
  await until(() => watch?.error?.includes('etcd is away'));
  wasSeen = true;
  await until(() => watch?.error === null);
});

test('a watch that ends at once backs off before the next one', async () => {
  const began = performance.now();
  await watching([reply(200, listOf('10'))], [ending()]);
  await until(() => watchRequests().length >= 6);
  // The minimum of five waits that double from 5 ms to 20 ms, each at least half its step; a timer may fire a millisecond early.
  expect(performance.now() - began).toBeGreaterThanOrEqual(2.5 + 5 + 10 + 10 + 10 - 5);
});

test('a listener gets a changed Ready condition, but no heartbeats', async () => {
  const at = { lastTransitionTime: '2026-11-20T10:00:00Z' };
  const healthy = { status: 'True', reason: 'KubeletReady', message: 'ready', ...at };
  const unhealthy = {
    status: 'False',
    reason: 'KubeletNotReady',
    message: 'PLEG is not healthy',
    lastTransitionTime: '2026-11-20T10:05:00Z',
  };
  await watching(
    [reply(200, listOf('10', withReady('a', '5', healthy)))],
    [
      stream(
        event('MODIFIED', withReady('a', '11', { ...healthy, lastHeartbeatTime: '2026-11-20T10:04:00Z' })),
        event('MODIFIED', withReady('a', '12', unhealthy)),
        event('MODIFIED', node('b', 'u-b', '13')),
      ),
    ],
  );
  await until(() => watch?.synced);
  const received: string[] = [];
  watch?.onState((name, { ready }) => received.push(`${name} ${ready?.status} ${ready?.message}`));
  await until(() => watch?.get('b') !== undefined);
  expect(received.filter((each) => each.startsWith('a')).at(-1)).toBe('a False PLEG is not healthy');
  expect(received.filter((each) => each === 'a True ready').length).toBeLessThanOrEqual(1);
  expect(watch?.get('a')?.ready?.transitionAt).toBe(Date.parse('2026-11-20T10:05:00Z') * 1000);
});

test.each([
  ['conditions that are not a list', { conditions: 7 }],
  ['a condition that is not an object', { conditions: ['Ready'] }],
  ['a status that is not an object', 'Ready'],
])('a Node with %s has no Ready condition, and the watch continues', async (_, status) => {
  await watching([reply(200, listOf('10', { ...node('a', 'u1', '5'), status }))], [stream()]);
  await until(() => watch?.synced);
  expect(watch?.get('a')).toEqual({
    uid: 'u1',
    createdAt: null,
    labels: {},
    info: NO_INFO,
    ready: null,
    published: [],
  });
});

test('a list of the version that the watch has reached shows what it missed, which is applied and counted', async () => {
  let missed = 0;
  const before = listOf('10', node('a', 'u1', '5'), node('b', 'u2', '6'));
  const after = listOf('20', node('a', 'u9', '15'));
  const isOfVersion20 = (url = '') => url.includes('resourceVersion=20&resourceVersionMatch=Exact');
  // A list that is due before the bookmark has come shows what the first one did.
  const list: CannedResponse = (response) =>
    respondJson(response, 200, isOfVersion20(response.req.url) ? after : before);
  const bookmark = stream(event('BOOKMARK', node('', '', '20')));
  const onMissed = () => {
    missed += 1;
  };
  const { changes } = await watching([list], [bookmark], { relistMs: 20, onMissed });
  await until(() => missed >= 2);
  expect(changes.slice(2, 4).sort()).toEqual(['a u1 u9', 'b u2 -']);
  expect((api?.requests ?? []).some(isOfVersion20)).toBe(true);
});

test('a watch that brings not even a bookmark is compared with the present list', async () => {
  let missed = 0;
  await watching([reply(200, listOf('10')), reply(200, listOf('20', node('a', 'u1', '15')))], [stream()], {
    relistMs: 20,
    onMissed: () => {
      missed += 1;
    },
  });
  await until(() => missed === 1);
  expect((api?.requests ?? []).some((url) => url.includes('Exact'))).toBe(false);
});

test('a list at a version that is too old is made again, and shows nothing that a watch missed', async () => {
  let missed = 0;
  const { changes } = await watching(
    [reply(200, listOf('10')), reply(410), reply(200, listOf('30', node('a', 'u1', '25')))],
    [stream(event('BOOKMARK', node('', '', '20'))), stream()],
    {
      relistMs: 20,
      onMissed: () => {
        missed += 1;
      },
    },
  );
  await until(() => changes.length === 1 && watchRequests().length >= 3);
  expect(missed).toBe(0);
});

test('a list that fails leaves the watch as it is, until the next one is due', async () => {
  const failing: CannedResponse[] = [reply(200, listOf('10')), reply(500), reply(200, listOf('20'))];
  await watching(failing, [stream(event('BOOKMARK', node('', '', '20')))], { relistMs: 20 });
  await until(() => (api?.requests ?? []).filter((url) => url.includes('Exact')).length >= 2);
  await until(() => watchedVersions().length >= 2);
  expect(watchedVersions().slice(0, 2)).toEqual(['10', '20']);
});
