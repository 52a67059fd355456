/*
 * What a fallback means in real kubelets that are older than the one of the other tests. A pod is started while its kubelet is Evented; the
 * restart of its runtime ends that, and its container is killed. 1.30 keeps what events told it, until it restarts; 1.33 restarts the container.
 */
import { writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { KubeletMinor } from '../../devtools/localServices/where.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import { podsOf } from '../../src/kube/object.ts';
import { CONSEQUENCES } from '../../src/protocol/fallback.ts';
import { QUESTIONS } from '../support/documentedQuestions.ts';
import { needs } from '../support/needs.ts';
import { metric } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { waitFor } from '../support/waitFor.ts';
import type { WatchedNode } from '../support/watchedNode.ts';

const TIMEOUT_MS = 1_500_000;
/** Several scrapes of the kubelet, on a busy machine. */
const WITHIN_MS = 240_000;
/** A kubelet that restarts containers does so within two seconds. */
const WRONG_FOR_MS = 60_000;

interface ContainerStatus {
  readonly containerID?: string;
  readonly restartCount?: number;
  readonly state?: { readonly running?: object };
}

interface LagRow extends Record<string, unknown> {
  readonly lag_min_ms: number | null;
  readonly lag_max_ms: number | null;
}

const bed = new SystemBed({ kube: true });

needs(
  ...KUBELET_NEEDS,
  'containerd-2.1',
  'kubelet-1.30',
  'kubelet-1.33',
)('the container of a pod that was started before a fallback', () => {
  beforeAll(async () => {
    // No controller creates one here, and no pod is admitted without it.
    await bed.system.kubectl('create', 'serviceaccount', 'default');
  });

  test('is neither restarted nor reported by a kubelet 1.30 after it was killed, until the kubelet restarts, and plegwatch says so; the node can be drained', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { node, containerd, kubelet, id } = await fallenBack('old', '1.30');
    expect(conditionOf(await modeIs(node, 'Fallback'))).toEqual([
      'False',
      'PodsStayWrong',
      `The kubelet gave up the event stream. ${CONSEQUENCES.wrong_until_restart}`,
    ]);
    expect(await consequenceMetrics(node)).toEqual([1, 0]);
    await kill(containerd, id);
    // By what plegwatch read, and by a read of our own after that.
    const wrong = await lagIs(node, id, 'STOPPED', ({ lag_min_ms }) => (lag_min_ms ?? 0) >= WRONG_FOR_MS);
    expect(wrong.lag_max_ms).toBeNull();
    expect(await published(node)).toMatchObject({
      containerID: `containerd://${id}`,
      restartCount: 0,
      state: { running: {} },
    });
    expect(await runningContainers(containerd)).not.toContain(id);
    expect(await answerFor(node)).toMatchObject([
      { pod_name: podOn(node), event_type: 'STOPPED', kubelet_version: expect.stringMatching(/^v1\.30\./) },
    ]);

    await create(node, containerd, 'later');
    await running(node, 'later');
    for (const drained of ['drained', 'later']) await remove(node, drained);

    await kubelet.restart();
    await restarted(node, id);
    expect(conditionOf(await modeIs(node, 'Evented'))).toEqual(['True', 'Connected', expect.any(String)]);
    const right = await lagIs(node, id, 'STOPPED', ({ lag_max_ms }) => lag_max_ms !== null);
    expect(right.lag_min_ms).toBeGreaterThanOrEqual(WRONG_FOR_MS);
  });

  test('is restarted by a kubelet 1.33, of which plegwatch says no more than that it relists', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { node, containerd, id } = await fallenBack('newer', '1.33');
    expect(conditionOf(await modeIs(node, 'Fallback'))).toEqual([
      'False',
      'FellBack',
      `The kubelet gave up the event stream. ${CONSEQUENCES.slower}`,
    ]);
    expect(await consequenceMetrics(node)).toEqual([0, 1]);
    await kill(containerd, id);
    await restarted(node, id);
    expect(await answerFor(node)).toEqual([]);
  });
});

/** A node whose kubelet fell back after it had started a pod. Returns the id of the pod's container. */
async function fallenBack(name: string, minor: KubeletMinor) {
  const containerd = await bed.containerd({ version: '2.1' });
  const kubelet = await bed.kubelet({ node: name, containerd, eventedPleg: true, minor });
  const node = await bed.watch(name, containerd.socket, await bed.metricsOf(kubelet));
  await modeIs(node, 'Evented');
  for (const pod of ['kept', 'drained']) await create(node, containerd, pod);
  await running(node, 'drained');
  const { containerID = '' } = await running(node, 'kept');
  await containerd.restart();
  await modeIs(node, 'Fallback');
  await waitFor(
    'the agent is subscribed again',
    async () => (await metric(node.agent, 'plegwatch_stream_connected')) === 1,
    WITHIN_MS,
  );
  return { node, containerd, kubelet, id: containerID.replace('containerd://', '') };
}

const podOn = ({ name }: WatchedNode, pod = 'kept'): string => `${pod}-${name}`;

async function create(node: WatchedNode, containerd: LocalContainerd, pod: string): Promise<void> {
  const file = bed.system.folder(`${podOn(node, pod)}.json`);
  writeFileSync(file, JSON.stringify(manifestOf(node, containerd, pod)));
  await bed.system.kubectl('create', '-f', file);
}

/** Waits until the container of a pod is published as running. */
const running = (node: WatchedNode, pod: string): Promise<ContainerStatus> =>
  waitFor(
    `${podOn(node, pod)} runs`,
    async () => {
      const status = await published(node, pod);
      return status?.state?.running === undefined ? undefined : status;
    },
    WITHIN_MS,
  );

/** Deletes a pod as a drain does, and waits until its kubelet has let it go. */
async function remove(node: WatchedNode, pod: string): Promise<void> {
  await bed.system.kubectl('delete', 'pod', podOn(node, pod), '--wait=false');
  await waitFor(
    `${podOn(node, pod)} is gone`,
    async () => (await bed.system.kube.get(podsOf('default'), podOn(node, pod))) === undefined,
    WITHIN_MS,
  );
}

const manifestOf = (node: WatchedNode, { importedImages }: LocalContainerd, pod: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: podOn(node, pod), namespace: 'default' },
  spec: {
    nodeName: node.name,
    hostNetwork: true,
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    containers: [
      {
        name: 'app',
        image: importedImages.busybox,
        imagePullPolicy: 'Never',
        command: ['sleep', '3600'],
      },
    ],
  },
});

const kill = (containerd: LocalContainerd, id: string): Promise<string> =>
  containerd.ctr(['tasks', 'kill', '--signal', 'SIGKILL', id]);

/** The ids of the containers that have a running process. */
async function runningContainers(containerd: LocalContainerd): Promise<string[]> {
  const table = await containerd.ctr(['tasks', 'list']);
  return table.split('\n').flatMap((line) => {
    const [id, , status] = line.trim().split(/\s+/);
    return id !== undefined && status === 'RUNNING' ? [id] : [];
  });
}

/** The status of the pod's container, as the API server has it. */
async function published(node: WatchedNode, pod = 'kept'): Promise<ContainerStatus | undefined> {
  const object = await bed.system.kube.get(podsOf('default'), podOn(node, pod));
  const status = object?.['status'] as
    | { readonly containerStatuses?: readonly ContainerStatus[] }
    | undefined;
  return status?.containerStatuses?.[0];
}

/** Waits until another container than this one is published as running in its place. */
const restarted = (node: WatchedNode, id: string): Promise<ContainerStatus> =>
  waitFor(
    `the container of ${podOn(node)} is restarted`,
    async () => {
      const status = await published(node);
      const isAnother = status?.state?.running !== undefined && status.containerID !== `containerd://${id}`;
      return isAnother && (status.restartCount ?? 0) > 0 ? status : undefined;
    },
    WITHIN_MS,
  );

/** Waits until the status lag that was measured after the fallback satisfies a condition. */
const lagIs = (
  { name }: WatchedNode,
  id: string,
  type: string,
  isMeant: (row: LagRow) => boolean,
): Promise<LagRow> =>
  waitFor(
    `the lag of the ${type} of ${id}`,
    async () => {
      const rows = await bed.system.sql<LagRow>(
        `SELECT lag_min_ms, lag_max_ms FROM plegwatch.status_lags
          WHERE node = $1 AND container_id = $2 AND event_type = $3 AND kind = 'fallback'`,
        name,
        id,
        type,
      );
      return rows.find(isMeant);
    },
    WITHIN_MS,
  );

/** What the documented question answers of this node. */
async function answerFor({ name }: WatchedNode): Promise<Record<string, unknown>[]> {
  const question = QUESTIONS.find(({ heading }) =>
    heading.startsWith('Which pods stayed wrong after a fallback'),
  );
  const rows = await bed.system.sql(question?.sql ?? '');
  return rows.filter((row) => row['node'] === name);
}

/** Waits until the report in Kubernetes shows the mode. */
const modeIs = (node: WatchedNode, mode: string): Promise<ReportStatus> =>
  waitFor(
    `${node.name} is ${mode}`,
    async () => {
      const status = await node.publishedReport();
      if (status.mode !== mode) throw new Error(`it is ${JSON.stringify(status)}`);
      return status;
    },
    WITHIN_MS,
  );

function conditionOf({ conditions }: ReportStatus): (string | undefined)[] {
  const condition = conditions.find(({ type }) => type === 'EventedPLEGInUse');
  return [condition?.status, condition?.reason, condition?.message];
}

const consequenceMetrics = ({ agent }: WatchedNode) =>
  Promise.all(
    ['wrong_until_restart', 'slower'].map((consequence) =>
      metric(agent, `plegwatch_kubelet_fallback{consequence="${consequence}"}`),
    ),
  );
