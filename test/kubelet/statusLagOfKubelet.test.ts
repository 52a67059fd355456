/*
 * The cost of a lost event on a real node: a kubelet with the gate on and an agent are behind one proxy, which drops the stop events of chosen
 * containers for both. The kubelet notices the stop at its next relist, 300 s after the last, and until then publishes that the container runs. The
 * test compares the measured status lag with its own reads of the pod.
 *
 * Takes seven minutes: a kubelet's relist period cannot be set.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { LocalKubelet } from '../../devtools/localServices/kubelet.ts';
import type { CriProxy } from '../../devtools/simulator/proxy.ts';
import { waitAfter } from '../../src/controller/statusLag/watchLimits.ts';
import type { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { podsOf } from '../../src/kube/object.ts';
import { needs } from '../support/needs.ts';
import { LASTING_READER } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { CACHE } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import type { WatchedNode } from '../support/watchedNode.ts';

const NODE = 'status-lag';
const STOPPED = 2;
/** The relist period of an evented kubelet. */
const RELIST_MS = 300_000;
const START_MS = 240_000;
/** A relist period, and time until its result is published. */
const PUBLISHED_WITHIN_MS = RELIST_MS + 240_000;

const bed = new SystemBed({ kube: true, controller: { statusLagReadsPerSecond: '20' } });
let containerd: LocalContainerd;
let proxy: CriProxy;
let kubelet: LocalKubelet;
let node: WatchedNode;
/** Ids of the containers whose stop events are dropped. */
const lost = new Set<string>();

interface PodStatus {
  readonly containerStatuses?: readonly {
    readonly containerID?: string;
    readonly state?: { readonly running?: object; readonly terminated?: { readonly containerID?: string } };
    readonly lastState?: { readonly terminated?: { readonly containerID?: string } };
  }[];
}

interface FindingRow extends Record<string, unknown> {
  readonly finding_id: string;
  readonly kind: string;
  readonly pod_name: string;
  readonly lag_min_ms: number | null;
  readonly lag_max_ms: number | null;
  readonly lag_reason: string | null;
  readonly lag_anomalous: boolean | null;
}

/** Bounds (ms) of when a container was killed and when its end was published, from this test's own reads. */
interface ObservedEnd {
  readonly killed: readonly [number, number];
  readonly published: readonly [number, number];
}

needs(...KUBELET_NEEDS, `containerd-${CACHE.containerd}`)('the status of a pod', () => {
  beforeAll(async () => {
    containerd = await bed.containerd({ version: CACHE.containerd });
    proxy = await bed.proxy(containerd, (event) => (isLost(event) ? 'drop' : 'deliver'));
    const staticPods = bed.system.folder('static-pods');
    mkdirSync(staticPods);
    // No controller creates one here, and no pod is admitted without it.
    await bed.system.kubectl('create', 'serviceaccount', 'default');
    kubelet = await bed.kubelet({ node: NODE, containerd: proxy, eventedPleg: true, staticPods });
    // Long times: a stall of a busy machine that counted as a gap would leave what was missed unobservable.
    const patient = { overdueAfter: '20s', missedAfter: '30s', ...LASTING_READER };
    node = await bed.watch(NODE, proxy.socket, patient);
    writeFileSync(
      join(staticPods, 'fixed.json'),
      JSON.stringify(podOf('fixed', ['app'], SLEEPS, { restartPolicy: 'Always' })),
    );
  });

  test('lags by the reported amount if a stop event is lost, for static and ordinary pods, and not if the event is announced', {
    timeout: START_MS + 2 * PUBLISHED_WITHIN_MS + 600_000,
  }, async () => {
    const stop = new AbortController();
    const ordinary = announce(stop.signal);
    // Which lag is anomalous is only known after a hundred others, however long these take on a busy machine.
    const many = async () => (await ordinaryLags()).samples >= 100;
    await waitFor('many ordinary lags are known', many, PUBLISHED_WITHIN_MS);
    betweenPodsMs = 30_000;
    // Its relist period begins again.
    await kubelet.restart();
    await waitFor('it receives events', async () =>
      /^kubelet_evented_pleg_connection_success_count 1$/m.test(await kubelet.metrics()),
    );
    await create('plain');
    await create('announced');
    const ids = {
      plain: await runningId('plain'),
      announced: await runningId('announced'),
      fixed: await runningId(`fixed-${NODE}`),
    };
    for (const id of Object.values(ids)) await listedRunning(id);
    lost.add(ids.plain).add(ids.fixed);
    const ends = Promise.all([
      endOf('plain', ids.plain),
      endOf(`fixed-${NODE}`, ids.fixed),
      endOf('announced', ids.announced),
    ]);
    // Long before the kubelet notices.
    await waitFor('both are missed', async () => {
      const rows = await findingsOf(ids.plain, ids.fixed);
      if (rows.some(({ kind }) => kind !== 'missed')) throw new Error(JSON.stringify(rows));
      return rows.length === 2 ? rows : undefined;
    });
    const [plain, fixed, announced] = await ends;
    expect(new Set(proxy.dropped.map(({ event }) => event.containerId))).toEqual(lost);
    const found = await waitFor(
      'both lags are known',
      async () => {
        const rows = await findingsOf(ids.plain, ids.fixed);
        return rows.length === 2 && rows.every(({ lag_max_ms }) => lag_max_ms !== null) ? rows : undefined;
      },
      240_000,
    );
    stop.abort();
    await ordinary;

    const { most } = await ordinaryLags();
    const [plainRow, fixedRow] = ['plain', `fixed-${NODE}`].map((name) =>
      found.find(({ pod_name }) => pod_name === name),
    );
    for (const [row, seen] of [
      [plainRow, plain],
      [fixedRow, fixed],
    ] as const) {
      const [min, max] = [row?.lag_min_ms ?? Number.NaN, row?.lag_max_ms ?? Number.NaN];
      expect(row).toMatchObject({ lag_reason: null, lag_anomalous: true });
      expect(min).toBeGreaterThan(most);
      expect(max).toBeGreaterThanOrEqual(min);
      // It may be read one interval after it was published, and as late as any other status on this machine.
      const longest = seen.published[1] - seen.killed[0];
      expect(max).toBeLessThanOrEqual(longest + most + waitAfter(1_000));
      // Both ranges contain the true lag, so they overlap.
      expect(min).toBeLessThanOrEqual(longest);
      expect(max).toBeGreaterThanOrEqual(seen.published[0] - seen.killed[1]);
    }
    expect(announced.published[0] - announced.killed[1]).toBeLessThan(plainRow?.lag_min_ms ?? 0);
    for (const row of await findingsOf(ids.announced)) expect(row.lag_min_ms ?? 0).toBeLessThanOrEqual(most);

    const report = await waitFor('the report shows both lags', async () => {
      const status = await node.publishedReport();
      const withLag = status.missedEvents.filter(
        ({ statusLagMilliseconds }) => statusLagMilliseconds !== undefined,
      );
      if (withLag.length !== 2) throw new Error(`it is ${JSON.stringify(status)}`);
      return withLag;
    });
    const reported = new Map(
      report.map(({ findingID, statusLagMilliseconds }) => [findingID, statusLagMilliseconds]),
    );
    for (const { finding_id, lag_min_ms } of found)
      expect(reported.get(finding_id)).toBe(Math.round(lag_min_ms ?? Number.NaN));
  });
});

const SLEEPS = ['sleep', '3600'];

function podOf(
  name: string,
  containers: readonly string[],
  command: readonly string[],
  more: object = {},
): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      nodeName: NODE,
      hostNetwork: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      containers: containers.map((container) => ({
        name: container,
        image: containerd.importedImages.busybox,
        imagePullPolicy: 'Never',
        command,
      })),
      ...more,
    },
  };
}

async function create(
  name: string,
  containers: readonly string[] = ['app'],
  command: readonly string[] = SLEEPS,
): Promise<void> {
  const file = bed.system.folder(`pod-${name}.json`);
  writeFileSync(file, JSON.stringify(podOf(name, containers, command)));
  await bed.system.kubectl('create', '-f', file);
}

/** Leaves processor time for other processes: more once there are enough samples, which then only say how late statuses are on this machine. */
let betweenPodsMs = 6_000;

/** Runs short pods one after another: their announced events give the samples of ordinary lag. */
async function announce(signal: AbortSignal): Promise<void> {
  for (let i = 1; !signal.aborted; i += 1) {
    const name = `ordinary-${i}`;
    await create(name, ['one', 'two', 'three', 'four', 'five'], ['sleep', '1']);
    await delay(betweenPodsMs, undefined, { signal }).catch(() => undefined);
    if (i > 3) await bed.system.kubectl('delete', 'pod', `ordinary-${i - 3}`, '--wait=false');
  }
}

const isLost = ({ containerId, containerEventType }: ContainerEventResponse): boolean =>
  lost.has(containerId) && containerEventType === STOPPED;

async function statusOf(name: string): Promise<PodStatus> {
  const object = await bed.system.kube.get(podsOf('default'), name);
  return (object?.['status'] ?? {}) as PodStatus;
}

/** The id of the one container of a pod that is published as running. */
function runningId(name: string): Promise<string> {
  return waitFor(
    `${name} runs`,
    async () => {
      const [container] = (await statusOf(name)).containerStatuses ?? [];
      return container?.state?.running === undefined
        ? undefined
        : container.containerID?.replace('containerd://', '');
    },
    START_MS,
  );
}

/** An agent reports nothing missed of containers from before its first lists: waits until a list has shown this one. */
async function listedRunning(id: string): Promise<void> {
  await waitFor(`a list shows ${id}`, async () => {
    const changes = `SELECT FROM plegwatch.relist_changes WHERE node = $1 AND container_id = $2 AND new_state = 'running'`;
    return (await bed.system.sql(changes, NODE, id)).length > 0;
  });
}

/** Kills a container, and waits until its end is published. */
async function endOf(name: string, id: string): Promise<ObservedEnd> {
  const before = Date.now();
  await containerd.ctr(['tasks', 'kill', '--signal', 'SIGKILL', id]);
  const killed = [before, Date.now()] as const;
  let unpublished = before;
  const shown = await waitFor(
    `the end of ${name} is published`,
    async () => {
      const began = Date.now();
      const isShown = (await statusOf(name)).containerStatuses?.some(({ state, lastState }) =>
        [state, lastState].some((each) => each?.terminated?.containerID === `containerd://${id}`),
      );
      if (isShown !== true) unpublished = began;
      return isShown === true ? Date.now() : undefined;
    },
    PUBLISHED_WITHIN_MS,
  );
  return { killed, published: [unpublished, shown] };
}

const findingsOf = (...ids: readonly string[]): Promise<FindingRow[]> =>
  bed.system.sql<FindingRow>(
    `SELECT finding_id, kind, cause, pod_name, lag_min_ms, lag_max_ms, lag_reason, lag_anomalous
       FROM plegwatch.findings WHERE node = $1 AND event_type = 'STOPPED' AND container_id = ANY ($2)`,
    NODE,
    ids,
  );

async function ordinaryLags(): Promise<{ readonly samples: number; readonly most: number }> {
  const [row] = await bed.system.sql<{ samples: number; most: number | null }>(
    'SELECT count(*)::int4 AS samples, max(lag_max_ms) AS most FROM plegwatch.status_lags WHERE node = $1',
    NODE,
  );
  return { samples: row?.samples ?? 0, most: row?.most ?? Number.NaN };
}
