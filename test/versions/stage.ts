/*
 * A node of the scenario: a containerd, a proxy before its socket for the kubelet and another for the agent, the built agent, and what the scenario asks
 * of each of them. Truth is the kubelet's log, the calls that its proxy saw, and reads of the test's own.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { LocalKubelet } from '../../devtools/localServices/kubelet.ts';
import type { PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { waitingPod } from '../../devtools/localServices/pods.ts';
import { run } from '../../devtools/localServices/process.ts';
import { type KubeletMinor, type ProgramName, where } from '../../devtools/localServices/where.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { CriProxy, EventFilter } from '../../devtools/simulator/proxy.ts';
import type { TriedContainerd, TriedKubelet } from '../../devtools/versions/pairs.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import type { Container } from '../../src/cri/runtime.ts';
import { podsOf } from '../../src/kube/object.ts';
import { LASTING_READER } from '../support/system.ts';
import type { SystemBed } from '../support/systemBed.ts';
import { waitFor } from '../support/waitFor.ts';
import type { GapRow, WatchedNode } from '../support/watchedNode.ts';
import { GIVES_UP_WITH, KUBELETS } from './facts.ts';

/** Several scrapes of the kubelet, on a very busy machine. */
const WITHIN_MS = 480_000;
/** The clock of a record is that of the node when its epoch began, and a log is written a moment after what it says. */
export const CLOCKS_MS = 1_000;

export interface ModeChange extends Record<string, unknown> {
  readonly from_mode: string;
  readonly to_mode: string;
  readonly reason: string;
  readonly kubelet_version: string | null;
  readonly after: number;
  readonly at: number;
}

/** A program ran at `before` and was down from `down` to `up`. */
export interface Downtime {
  readonly before: number;
  readonly down: number;
  readonly up: number;
}

type ClosedGap = Pick<GapRow, 'cause' | 'from'> & { readonly to: number };

export interface ContainerStatus {
  readonly containerID?: string;
  readonly restartCount?: number;
  readonly state?: { readonly running?: object };
}

/** 1.36 is that of the API server. */
export const programOf = (kubelet: TriedKubelet): ProgramName =>
  kubelet === '1.36' ? 'kubelet' : `kubelet-${kubelet}`;

export const minorOf = (kubelet: TriedKubelet): KubeletMinor | undefined =>
  kubelet === '1.36' ? undefined : kubelet;

/** The first version in what `--version` prints. */
export async function versionOf(program: ProgramName): Promise<string> {
  const printed = await run(where(program), ['--version']);
  return /\bv?(\d+\.\d+\.\d+)/.exec(printed)?.[1] ?? printed.trim();
}

export class Stage {
  readonly containerd: LocalContainerd;
  readonly kubelet: LocalKubelet;
  readonly node: WatchedNode;
  /** Before the runtime's socket: the kubelet's, and the agent's. */
  readonly kubeletProxy: CriProxy;
  readonly agentProxy: CriProxy;
  readonly staticPods: string;
  readonly #bed: SystemBed;
  /** Where the log of the kubelet's present run begins. */
  #runBegins = 0;

  private constructor(
    bed: SystemBed,
    parts: Pick<Stage, 'containerd' | 'kubelet' | 'node' | 'kubeletProxy' | 'agentProxy' | 'staticPods'>,
  ) {
    this.#bed = bed;
    this.containerd = parts.containerd;
    this.kubelet = parts.kubelet;
    this.node = parts.node;
    this.kubeletProxy = parts.kubeletProxy;
    this.agentProxy = parts.agentProxy;
    this.staticPods = parts.staticPods;
  }

  /** With the gate off. */
  static async set(
    bed: SystemBed,
    name: string,
    kubeletVersion: TriedKubelet,
    version: TriedContainerd,
    settings: PlegwatchSettings = {},
  ): Promise<Stage> {
    const containerd = await bed.containerd({ version });
    const [kubeletProxy, agentProxy] = [await bed.proxy(containerd), await bed.proxy(containerd)];
    const staticPods = bed.system.folder(`pods-${name}`);
    mkdirSync(staticPods);
    const kubelet = await bed.kubelet({
      node: name,
      containerd: kubeletProxy,
      eventedPleg: false,
      staticPods,
      minor: minorOf(kubeletVersion),
    });
    const node = await bed.watch(name, agentProxy.socket, {
      ...(await bed.metricsOf(kubelet)),
      kubeletServerName: kubelet.serverName,
      kubeletCaFile: kubelet.caFile,
      // A stall of a busy machine that counted as a gap would leave little to see.
      ...{ overdueAfter: '20s', missedAfter: '30s', lateAfter: '10m', ...LASTING_READER },
      ...settings,
    });
    return new Stage(bed, { containerd, kubelet, node, kubeletProxy, agentProxy, staticPods });
  }

  async restartKubelet(): Promise<void> {
    this.#runBegins = readFileSync(this.kubelet.logFile).length;
    await this.kubelet.restart();
  }

  /** The lines of the kubelet's log of its present run that have these words, and their times. */
  logged(words: string): number[] {
    const log = readFileSync(this.kubelet.logFile).subarray(this.#runBegins).toString();
    return log
      .split('\n')
      .filter((line) => line.includes(words))
      .map(timeOfLine);
  }

  /** When the kubelet gave up its stream, by its log; undefined if it did not. */
  gaveUpAt(version: TriedKubelet): number | undefined {
    const [at, ...more] = this.logged(GIVES_UP_WITH[KUBELETS[version].design]);
    if (more.length > 0) throw new Error('a kubelet gives up once in a run');
    return at;
  }

  /** The runtime's proxies are as gone as it is. */
  async killRuntime(): Promise<void> {
    await this.containerd.kill();
    await Promise.all([this.kubeletProxy.stop(), this.agentProxy.stop()]);
  }

  /** Returns until when nobody could reach it. */
  async restartRuntime(): Promise<number> {
    await this.containerd.restart();
    const up = Date.now();
    await Promise.all([this.kubeletProxy.listen(), this.agentProxy.listen()]);
    return up;
  }

  /** The one gap that encloses a downtime. It begins at what the agent last read of the program, and ends with what it read next. */
  async gapOf(scope: 'stream' | 'kubelet', { before, down, up }: Downtime): Promise<ClosedGap> {
    const gap = await this.until(`the gap of scope ${scope} is stored`, async () => {
      const [one, ...more] = (await this.node.gaps(scope)).filter(
        ({ from, to }) => from <= down + CLOCKS_MS && to !== null && to >= up - CLOCKS_MS,
      );
      expect(more).toEqual([]);
      return one === undefined ? undefined : { cause: one.cause, from: one.from, to: one.to ?? 0 };
    });
    expect(gap.from).toBeGreaterThanOrEqual(before - CLOCKS_MS);
    expect(gap.to).toBeLessThanOrEqual(Date.now() + CLOCKS_MS);
    return gap;
  }

  dropForAgent(filter: EventFilter): void {
    this.agentProxy.setFilter(filter);
  }

  /** The containers that the runtime has, by a list of the test's own. */
  async containers(): Promise<Container[]> {
    const cri = connectCri(this.containerd.socket);
    try {
      return (await cri.call('listContainers', { filter: undefined })).containers;
    } finally {
      cri.close();
    }
  }

  addStaticPod(name: string): void {
    const pod = waitingPod({ name, image: this.containerd.importedImages.busybox });
    writeFileSync(join(this.staticPods, `${name}.json`), JSON.stringify(pod));
  }

  async createPod(name: string): Promise<void> {
    const pod = waitingPod({
      name: `${name}-${this.node.name.replaceAll('.', '-')}`,
      node: this.node.name,
      image: this.containerd.importedImages.busybox,
    });
    const file = this.#bed.system.folder(`${pod.metadata.name}.json`);
    writeFileSync(file, JSON.stringify(pod));
    await this.#bed.system.kubectl('create', '-f', file);
  }

  #nameOf = (pod: string): string => `${pod}-${this.node.name}`;

  /** The status of the pod's container, as the API server has it. */
  async published(pod: string): Promise<ContainerStatus | undefined> {
    const object = await this.#bed.system.kube.get(podsOf('default'), this.#nameOf(pod));
    const status = object?.['status'] as
      | { readonly containerStatuses?: readonly ContainerStatus[] }
      | undefined;
    return status?.containerStatuses?.[0];
  }

  /** Waits until a container of the pod other than these is published as running; returns its id. */
  runningOf(pod: string, ...others: readonly string[]): Promise<string> {
    return this.until(`${pod} runs`, async () => {
      const status = await this.published(pod);
      const id = status?.containerID?.replace('containerd://', '') ?? '';
      return status?.state?.running !== undefined && !others.includes(id) ? id : undefined;
    });
  }

  /** Deletes a pod as a drain does, and waits until its kubelet has let it go. */
  async removePod(pod: string): Promise<void> {
    await this.#bed.system.kubectl('delete', 'pod', this.#nameOf(pod), '--wait=false');
    await this.until(
      `${pod} is gone`,
      async () => (await this.#bed.system.kube.get(podsOf('default'), this.#nameOf(pod))) === undefined,
    );
  }

  killContainer(id: string): Promise<string> {
    return this.containerd.ctr(['tasks', 'kill', '--signal', 'SIGKILL', id]);
  }

  /** Waits until the report in Kubernetes satisfies a condition. */
  reportIs(what: string, isMeant: (status: ReportStatus) => boolean): Promise<ReportStatus> {
    return this.until(`${this.node.name}: ${what}`, async () => {
      const status = await this.node.publishedReport();
      if (!isMeant(status)) throw new Error(`it is ${JSON.stringify(status)}`);
      return status;
    });
  }

  modeIs(mode: string): Promise<ReportStatus> {
    return this.reportIs(`its mode is ${mode}`, (status) => status.mode === mode);
  }

  /** The changes of the mode, in their order. */
  changes(): Promise<ModeChange[]> {
    return this.#bed.system.sql<ModeChange>(
      `SELECT from_mode, to_mode, reason, kubelet_version, (extract(epoch FROM not_before) * 1000)::float8 AS after,
              (extract(epoch FROM at) * 1000)::float8 AS at
         FROM plegwatch.mode_changes WHERE node = $1 ORDER BY at, seq`,
      this.node.name,
    );
  }

  async lastChange(): Promise<ModeChange> {
    const last = (await this.changes()).at(-1);
    if (last === undefined) throw new Error('no mode was stored');
    return last;
  }

  sql<R extends Record<string, unknown>>(text: string, ...values: unknown[]): Promise<R[]> {
    return this.#bed.system.sql<R>(text, this.node.name, ...values);
  }

  until = <T>(what: string, ask: () => Promise<T | false | undefined> | T | false | undefined): Promise<T> =>
    waitFor(what, ask, WITHIN_MS);
}

/** A kubelet counts an error, relists everything, and only then logs that it gives up: a scrape may lie between. */
const RELIST_MS = 10_000;

/** Whether a change's bounds enclose what the kubelet's log says, to what clocks differ by. */
export const isWithin = ({ after, at }: Pick<ModeChange, 'after' | 'at'>, logged: number): boolean =>
  logged >= after - CLOCKS_MS && logged <= at + CLOCKS_MS + RELIST_MS;

/** klog's `I1125 20:25:30.123456 …`, in the machine's time zone. */
function timeOfLine(line: string): number {
  const [, month = '', day = '', clock = ''] = /^[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{3})/.exec(line) ?? [];
  return Date.parse(`${new Date().getFullYear()}-${month}-${day}T${clock}`);
}
