import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { json, type ScriptedApi, scriptedApi } from '../../../test/support/fakeApiServer.ts';
import { until } from '../../../test/support/waitFor.ts';
import { createKubeClient, type KubeClient } from './client.ts';
import { type NodeWatch, startNodeWatch } from './nodes.ts';

const log = pino({ level: 'silent' });
const node = (name: string, uid: string, resourceVersion: string) => ({
  metadata: { name, uid, resourceVersion },
});
const listOf = (resourceVersion: string, ...items: object[]) => ({ metadata: { resourceVersion }, items });

type Step = (response: ServerResponse) => void;
const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

let api: ScriptedApi | undefined;
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

interface Beside {
  readonly gets?: Step[];
  readonly witnessMs?: number;
  readonly onMissed?: () => void;
}

/** Answers lists, watches and single Nodes with these steps in order; the last of each is repeated. */
async function watching(
  lists: Step[],
  watches: Step[],
  { gets = [], witnessMs = 3_600_000, onMissed = () => undefined }: Beside = {},
): Promise<{ changes: string[] }> {
  api = await scriptedApi((request, response) => {
    const single = request.url?.startsWith('/api/v1/nodes/') === true;
    const steps = single ? gets : request.url?.includes('watch=true') ? watches : lists;
    const step = steps.length > 1 ? steps.shift() : steps[0];
    step?.(response);
  });
  kube = await createKubeClient({ kubeconfig: api.kubeconfig });
  watch = startNodeWatch({ kube, log, backoff: { firstMs: 5, maxMs: 20 }, witnessMs, onMissed });
  const changes: string[] = [];
  watch.onChange((name, present, before) =>
    changes.push(`${name} ${before?.uid ?? '-'} ${present?.uid ?? '-'}`),
  );
  return { changes };
}

const answer =
  (status: number, body: object = {}): Step =>
  (response) =>
    json(response, status, body);
const stream =
  (...lines: string[]): Step =>
  (response) => {
    response.writeHead(200);
    response.write(lines.join(''));
  };
const reset: Step = (response) => response.destroy();
const ending =
  (...lines: string[]): Step =>
  (response) => {
    response.writeHead(200);
    response.end(lines.join(''));
  };

const watchesAsked = () => (api?.asked ?? []).filter((url) => url.includes('watch=true'));
const versionsAsked = () =>
  watchesAsked().map((url) => new URL(url, 'http://x').searchParams.get('resourceVersion'));

test('a list, then what changes', async () => {
  const { changes } = await watching(
    [answer(200, listOf('10', node('a', 'u1', '5'), node('b', 'u2', '6')))],
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
  expect(watch?.get('c')).toEqual({ uid: 'u3', ready: null });
});

test('all pages of a list count, and a page that expired starts the list over', async () => {
  const first = { metadata: { resourceVersion: '10', continue: 'more' }, items: [node('a', 'u1', '5')] };
  await watching(
    [answer(200, first), answer(410), answer(200, first), answer(200, listOf('10', node('b', 'u2', '6')))],
    [stream()],
  );
  await until(() => watch?.synced);
  expect([...(watch?.names() ?? [])]).toEqual(['a', 'b']);
});

test.each([
  ['a 429', answer(429)],
  ['a 500', answer(500)],
  ['a reset', reset],
  ['a refusal', answer(403, { message: 'no' })],
  ['something that is no JSON', ending('<html>\n')],
])('%s in a watch waits and goes on from the last version told', async (_, fault) => {
  const { changes } = await watching(
    [answer(200, listOf('10'))],
    [ending(event('BOOKMARK', node('', '', '20'))), fault, stream(event('ADDED', node('a', 'u1', '21')))],
  );
  await until(() => changes.length === 1);
  expect(versionsAsked()).toEqual(['10', '20', '20']);
  expect((api?.asked ?? []).length).toBe(4);
});

test.each([
  ['a status', answer(410)],
  ['an event', stream(event('ERROR', { code: 410, reason: 'Expired', message: 'too old' }))],
])(
  'a version that is too old, told as %s, is listed again: what went meanwhile goes, what was replaced changes',
  async (_, expired) => {
    const { changes } = await watching(
      [
        answer(200, listOf('10', node('a', 'u1', '5'), node('b', 'u2', '6'))),
        answer(200, listOf('30', node('b', 'u9', '25'))),
      ],
      [expired, stream()],
    );
    await until(() => changes.length === 4 && versionsAsked().length >= 2);
    expect(changes.slice(2)).toEqual(['a u1 -', 'b u2 u9']);
    expect(versionsAsked().slice(0, 2)).toEqual(['10', '30']);
  },
);

test('a list that fails is tried again, and the trouble is told meanwhile', async () => {
  let fails = true;
  await watching(
    [
      (response) =>
        fails ? answer(500, { message: 'etcd is away' })(response) : answer(200, listOf('10'))(response),
    ],
    [stream()],
  );
  await until(() => watch?.trouble?.includes('etcd is away'));
  expect(watch?.synced).toBe(false);
  fails = false;
  await until(() => watch?.synced);
  expect(watch?.trouble).toBeNull();
});

test('a watch that is taken again ends the trouble, although nothing changes', async () => {
  await watching([answer(200, listOf('10'))], [answer(500, { message: 'etcd is away' }), stream()]);
  await until(() => watch?.trouble?.includes('etcd is away'));
  await until(() => watch?.trouble === null);
  expect(watchesAsked()).toHaveLength(2);
});

test('a watch that ends at once is not asked in a tight loop', async () => {
  const began = performance.now();
  await watching([answer(200, listOf('10'))], [ending()]);
  await until(() => watchesAsked().length >= 6);
  // The least of five waits that double from 5 ms to 20 ms, each at least half its step.
  expect(performance.now() - began).toBeGreaterThanOrEqual(2.5 + 5 + 10 + 10 + 10);
});

test('a Ready condition is told when it is another, and not for a heartbeat', async () => {
  const at = { lastTransitionTime: '2026-11-20T10:00:00Z' };
  const well = { status: 'True', reason: 'KubeletReady', message: 'ready', ...at };
  const ill = {
    status: 'False',
    reason: 'KubeletNotReady',
    message: 'PLEG is not healthy',
    lastTransitionTime: '2026-11-20T10:05:00Z',
  };
  await watching(
    [answer(200, listOf('10', withReady('a', '5', well)))],
    [
      stream(
        event('MODIFIED', withReady('a', '11', { ...well, lastHeartbeatTime: '2026-11-20T10:04:00Z' })),
        event('MODIFIED', withReady('a', '12', ill)),
        event('MODIFIED', node('b', 'u-b', '13')),
      ),
    ],
  );
  await until(() => watch?.synced);
  const told: string[] = [];
  watch?.onReady((name, { ready }) => told.push(`${name} ${ready?.status} ${ready?.message}`));
  await until(() => watch?.get('b') !== undefined);
  expect(told.filter((each) => each.startsWith('a')).at(-1)).toBe('a False PLEG is not healthy');
  expect(told.filter((each) => each === 'a True ready').length).toBeLessThanOrEqual(1);
  expect(watch?.get('a')?.ready?.transitionAt).toBe(Date.parse('2026-11-20T10:05:00Z') * 1000);
});

test.each([
  ['conditions that are no list', { conditions: 7 }],
  ['a condition that is no object', { conditions: ['Ready'] }],
  ['a status that is none', 'Ready'],
])('%s make a Node without a Ready condition, and end nothing', async (_, status) => {
  await watching([answer(200, listOf('10', { ...node('a', 'u1', '5'), status }))], [stream()]);
  await until(() => watch?.synced);
  expect(watch?.get('a')).toEqual({ uid: 'u1', ready: null });
});

test('what the watch does not tell is seen by the second witness, corrected and counted', async () => {
  let missed = 0;
  const before = listOf('10', node('a', 'u1', '5'), node('b', 'u2', '6'));
  const after = listOf('20', node('a', 'u9', '15'));
  const { changes } = await watching([answer(200, before), answer(200, after)], [stream()], {
    gets: [answer(200, node('a', 'u9', '15')), answer(404)],
    witnessMs: 20,
    onMissed: () => {
      missed += 1;
    },
  });
  await until(() => missed === 2);
  expect(changes.slice(2).sort()).toEqual(['a u1 u9', 'b u2 -']);
});

test('a list that differs proves nothing where the Node itself is as the watch told', async () => {
  let missed = 0;
  const { changes } = await watching(
    [answer(200, listOf('10', node('a', 'u1', '5'))), answer(200, listOf('9'))],
    [stream()],
    {
      gets: [answer(200, node('a', 'u1', '5'))],
      witnessMs: 10,
      onMissed: () => {
        missed += 1;
      },
    },
  );
  await until(() => (api?.asked ?? []).filter((url) => url.startsWith('/api/v1/nodes/a')).length >= 3);
  expect(missed).toBe(0);
  expect(changes).toEqual(['a - u1']);
});
