/*
 * One scenario for each pair of a kubelet and a containerd. The expected figures of each are in facts.ts; results.ts stores the found ones.
 *
 *   gate off ─► gate on, streaming lists ─► static pods, whose events the agent partly loses ─► four cuts of the kubelet's stream ─► the fifth
 *   ─► kubelet restarted ─► runtime killed, down for 20 s, restarted ─► a container is killed ─► kubelet restarted
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { where } from '../../devtools/localServices/where.ts';
import { PAIRS, type TriedContainerd, type TriedKubelet } from '../../devtools/versions/pairs.ts';
import type { PairRun, Situation } from '../../devtools/versions/results.ts';
import type { Container } from '../../src/cri/runtime.ts';
import { CONSEQUENCES } from '../../src/protocol/fallback.ts';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { documentedSql } from '../support/documentedQuestions.ts';
import { eventKey, type Listener, listen } from '../support/listener.ts';
import { needs } from '../support/needs.ts';
import { metric } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { consequenceOf, KUBELETS, MODES, RUNTIMES } from './facts.ts';
import { digestOf, store } from './results.ts';
import { isWithin, type ModeChange, programOf, Stage, versionOf } from './stage.ts';

const TIMEOUT_MS = 3_600_000;
const STATIC_PODS = ['one', 'two', 'three', 'four'] as const;
/** Every third event of the static pods is kept from the agent. */
const LOST = 3;
const DOWN_MS = 20_000;
/** A kubelet that restarts containers does so within two seconds. */
const WRONG_FOR_MS = 60_000;

/** CREATED and STARTED, of a sandbox and of its container. */
const EVENTS_OF_START = 4;
/** Two lists of the agent that show the same, and the one that may have been under way before them. */
const LISTS_OF_PROOF = 3;
/** CONTAINER_RUNNING of the CRI. */
const RUNNING = 1;

const STREAMS = ['StreamContainers', 'StreamPodSandboxes'];
const LISTS = ['ListContainers', 'ListPodSandbox'];

/** Registers the tests of a kubelet with every containerd that it is tried with. */
export function tryPairsOf(kubelet: TriedKubelet): void {
  const bed = new SystemBed({ kube: true });
  for (const containerd of PAIRS[kubelet])
    needs(
      ...KUBELET_NEEDS,
      programOf(kubelet),
      `containerd-${containerd}`,
    )(`kubelet ${kubelet} with containerd ${containerd}`, () => {
      beforeAll(async () => {
        // No controller creates one here, and no pod is admitted without it.
        await bed.system.kubectl('create', 'serviceaccount', 'default').catch((error: unknown) => {
          if (!String(error).includes('already exists')) throw error;
        });
      });
      test('is in the mode that its log shows, in every situation', { timeout: TIMEOUT_MS }, async () => {
        const began = performance.now();
        const situations: Situation[] = [];
        let passed = false;
        try {
          await new Scenario(bed, kubelet, containerd, situations).play();
          passed = true;
        } finally {
          store(await runOf(kubelet, containerd, { situations, passed, seconds: seconds(began) }));
        }
      });
    });
}

const seconds = (began: number): number => Math.round((performance.now() - began) / 1_000);

async function runOf(
  kubelet: TriedKubelet,
  containerd: TriedContainerd,
  outcome: Pick<PairRun, 'situations' | 'passed' | 'seconds'>,
): Promise<PairRun> {
  const programs = { kubelet: programOf(kubelet), containerd: `containerd-${containerd}` } as const;
  return {
    scenario: 'pair',
    kubelet,
    containerd,
    versions: {
      kubelet: [await versionOf(programs.kubelet)],
      containerd: [await versionOf(programs.containerd)],
    },
    digests: {
      kubelet: [digestOf(where(programs.kubelet))],
      containerd: [digestOf(where(programs.containerd))],
    },
    date: new Date().toISOString().slice(0, 10),
    ...outcome,
  };
}

class Scenario {
  readonly #bed: SystemBed;
  readonly #kubelet: TriedKubelet;
  readonly #containerd: TriedContainerd;
  readonly #situations: Situation[];
  #stage: Stage | null = null;

  constructor(bed: SystemBed, kubelet: TriedKubelet, containerd: TriedContainerd, situations: Situation[]) {
    this.#bed = bed;
    this.#kubelet = kubelet;
    this.#containerd = containerd;
    this.#situations = situations;
  }

  async play(): Promise<void> {
    // Node.js takes a name that ends in a number after a dot for an address.
    const name = `kubelet-${this.#kubelet}-containerd-${this.#containerd}`.replaceAll('.', '-');
    this.#stage = await Stage.set(this.#bed, name, this.#kubelet, this.#containerd);
    await this.#gateOff();
    await this.#gateOn();
    await this.#staticPods();
    await this.#cuts();
    await this.#kubeletRestarted();
    await this.#runtimeKilled();
    await this.#containerKilled();
  }

  get #at(): Stage {
    if (this.#stage === null) throw new Error('the stage is not set');
    return this.#stage;
  }
  get #facts() {
    return KUBELETS[this.#kubelet];
  }
  get #runtime() {
    return RUNTIMES[this.#containerd];
  }
  get #modes() {
    return MODES[this.#facts.design];
  }

  #saw(name: string, said: string, truth: string, change?: ModeChange): void {
    const iso = (ms: number): string => new Date(ms).toISOString();
    const since: Situation['since'] = change === undefined ? null : [iso(change.after), iso(change.at)];
    this.#situations.push({ name, said, since, truth });
  }

  /** The last change of the mode, which led to this mode. */
  async #changedTo(mode: string, reason: string): Promise<ModeChange> {
    await this.#at.modeIs(mode);
    const change = await this.#at.until('the change is stored', async () => {
      const last = await this.#at.lastChange();
      return last.to_mode === mode && last.reason === reason ? last : undefined;
    });
    expect(change.kubelet_version).toMatch(new RegExp(`^v${this.#kubelet.replace('.', '\\.')}\\.`));
    return change;
  }

  async #gateOff(): Promise<void> {
    const change = await this.#changedTo('Generic', 'GateDisabled');
    expect(this.#at.kubeletProxy.calls.get('GetContainerEvents') ?? 0).toBe(0);
    await this.#expectLists(false);
    this.#saw('gate off', 'Generic (GateDisabled)', 'the kubelet asked its runtime for no events', change);
  }

  async #gateOn(): Promise<void> {
    const lists = this.#facts.hasStreamingLists ? { CRIListStreaming: true } : {};
    this.#at.kubelet.setGates({ EventedPLEG: true, ...lists });
    await this.#at.restartKubelet();
    const change = await this.#changedTo(this.#modes.on, 'GateEnabled');
    expect(this.#at.kubeletProxy.streams).toBe(1);
    expect(this.#at.gaveUpAt(this.#kubelet)).toBeUndefined();
    this.#saw('gate on', `${this.#modes.on} (GateEnabled)`, 'the kubelet holds one event stream', change);
    if (!this.#facts.hasStreamingLists) return this.#expectNoStreamingLists();
    await this.#expectLists(this.#runtime.hasStreamingLists);
    // A runtime that does not know the call is asked once.
    expect(STREAMS.some((call) => (this.#at.kubeletProxy.calls.get(call) ?? 0) > 0)).toBe(true);
    // Its way of listing makes no difference.
    await this.#at.modeIs(this.#modes.on);
    const truth = this.#runtime.hasStreamingLists
      ? 'the kubelet lists with Stream calls only'
      : 'the kubelet tried a Stream call, and lists as before';
    this.#saw('CRIListStreaming on', this.#modes.on, truth);
  }

  async #expectNoStreamingLists(): Promise<void> {
    const metrics = await this.#at.kubelet.metrics();
    expect(metrics).toContain('kubernetes_feature_enabled{name="EventedPLEG"');
    expect(metrics).not.toContain('name="CRIListStreaming"');
    this.#saw('CRIListStreaming', 'not tried', 'the kubelet lists its gates without it');
  }

  /** By the calls that the kubelet makes from now on. */
  async #expectLists(streamed: boolean): Promise<void> {
    const { calls } = this.#at.kubeletProxy;
    const count = (methods: readonly string[]) =>
      methods.reduce((all, method) => all + (calls.get(method) ?? 0), 0);
    if (!this.#facts.hasStreamingLists) expect(count(STREAMS)).toBe(0);
    const before = { streams: count(STREAMS), lists: count(LISTS) };
    const made = () => count(streamed ? STREAMS : LISTS) - (streamed ? before.streams : before.lists);
    await this.#at.until('the kubelet lists', () => made() >= 4);
    if (streamed) expect(count(LISTS)).toBe(before.lists);
  }

  /**
   * The kubelet runs static pods and removes them, and the agent loses every third event of theirs. Each loss is a miss, if lists prove
   * it, and nothing else is.
   */
  async #staticPods(): Promise<void> {
    const at = this.#at;
    const listener = this.#runtime.everySubscriberReceivesAll ? listen(at.containerd.socket) : null;
    this.#bed.atEnd(() => listener?.close());
    if (listener !== null) await this.#losesEvents(listener);
    const relistsBefore = await relistsOf(at);
    for (const pod of STATIC_PODS) at.addStaticPod(pod);
    const starts = new StaticStarts();
    const listed = () => at.agentProxy.calls.get('ListContainers') ?? 0;
    const look = async () => starts.look(await this.#staticContainers(), listed());
    await at.until('the static pods run', async () => {
      await look();
      return starts.pods === STATIC_PODS.length;
    });
    const shown = listed() + LISTS_OF_PROOF;
    await at.until('the agent has listed them', async () => {
      await look();
      return listed() > shown;
    });
    await this.#expectRelists(relistsBefore);
    const twice = await this.#startedTwice(starts);
    for (const pod of STATIC_PODS) rmSync(join(at.staticPods, `${pod}.json`));
    await at.until('their containers are gone', async () => (await this.#staticContainers()).length === 0);
    this.#saw(
      'four static pods at once',
      `duplicate_container of ${twice.said}`,
      `${twice.seen} of them were started twice`,
    );
    if (listener === null) {
      await at.node.settled();
      await at.node.streamIs('Unsafe');
      expect(await at.node.events()).toEqual([]);
      const found = await at.sql(
        `SELECT kind, event_type FROM plegwatch.findings WHERE node = $1 AND event_type IS NOT NULL`,
      );
      expect(found).toEqual([]);
      expect(at.agentProxy.calls.get('GetContainerEvents') ?? 0).toBe(0);
      this.#saw(
        'churn',
        'stream Unsafe, no finding',
        'the agent asked for no events: each would be taken from the kubelet',
      );
    } else await this.#expectLosses(listener);
    at.dropForAgent(() => 'deliver');
  }

  /** The kubelet names a static pod after its node too. */
  async #staticContainers(): Promise<Container[]> {
    const names = new Set<string | undefined>(STATIC_PODS.map((pod) => `${pod}-${this.#at.node.name}`));
    const all = await this.#at.containers();
    return all.filter(({ labels }) => names.has(labels['io.kubernetes.pod.name']));
  }

  /** From when events of another pod have proved that listener and agent are subscribed. */
  async #losesEvents(listener: Listener): Promise<void> {
    const at = this.#at;
    await at.createPod('proof');
    await at.runningOf('proof');
    await at.node.streamIs('Active');
    await at.until('the listener is subscribed', () => listener.received.length > 0);
    let count = 0;
    at.dropForAgent(() => {
      count += 1;
      return count % LOST === 0 ? 'drop' : 'deliver';
    });
  }

  async #expectLosses(listener: Listener): Promise<void> {
    const at = this.#at;
    const { lost, missed } = await at.until('each event is stored, or lost and judged', async () => {
      const dropped = at.agentProxy.dropped.map(({ event }) =>
        eventKey(event.containerId, EVENT_TYPES[event.containerEventType]),
      );
      const rows = await at.sql<{ kind: string; event: string }>(
        `SELECT kind, concat_ws(' ', container_id, event_type) AS event FROM plegwatch.findings
          WHERE node = $1 AND kind IN ('missed', 'unobservable')`,
      );
      const judged = new Set(rows.map(({ event }) => event));
      const known = new Set([...(await at.node.events()), ...dropped]);
      const all =
        dropped.every((event) => judged.has(event)) && listener.received.every((event) => known.has(event));
      const accused = rows.filter(({ kind }) => kind === 'missed').map(({ event }) => event);
      return all ? { lost: dropped, missed: accused } : undefined;
    });
    // The listener, which nothing is kept from, has every one of them. Nothing is accused that did not happen, nor that arrived.
    expect(lost.filter((event) => !listener.received.includes(event))).toEqual([]);
    expect(missed.filter((event) => !lost.includes(event))).toEqual([]);
    expect(missed.length).toBeGreaterThan(0);
    this.#saw(
      'churn with drops',
      'each lost event is missed or unobservable, and no other',
      `${lost.length} of ${listener.received.length} events were kept from the agent; ${missed.length} were accused`,
    );
  }

  /** How many pods two containers of one name ran for: by lists of the test's own, and by plegwatch. */
  async #startedTwice(starts: StaticStarts): Promise<{ seen: number; said: number }> {
    const at = this.#at;
    const seen = starts.twice.length;
    if (!this.#facts.mayStartStaticPodsTwice) expect(seen).toBe(0);
    await at.node.settled();
    const rows = await at.sql<{ pod: string }>(
      `SELECT DISTINCT pod_name AS pod FROM plegwatch.findings WHERE node = $1 AND kind = 'duplicate_container'`,
    );
    const said = rows.map(({ pod }) => pod);
    expect(said.filter((pod) => !starts.twice.includes(pod))).toEqual([]);
    expect(starts.provenTogether.filter((pod) => !said.includes(pod))).toEqual([]);
    return { seen, said: said.length };
  }

  /** How often the kubelet relists, by its own count: while it is Evented hardly ever, else about once a second. */
  async #expectRelists(before: Relists): Promise<void> {
    const after = await relistsOf(this.#at);
    const perSecond = (after.count - before.count) / ((after.at - before.at) / 1_000);
    if (this.#facts.design === 'cache') expect(perSecond).toBeLessThan(0.2);
    else expect(after.count - before.count).toBeGreaterThan(1);
  }

  /** Cuts of the kubelet's stream, each an error. Four change nothing; with the fifth it gives up. */
  async #cuts(): Promise<void> {
    const at = this.#at;
    const cut = async (errors: number) => {
      await at.until('the kubelet has a stream', () => at.kubeletProxy.streams === 1);
      at.kubeletProxy.breakStreams();
      return at.reportIs(`it counts ${errors} errors`, ({ kubelet }) => kubelet.streamErrors === errors);
    };
    for (let errors = 1; errors <= 4; errors += 1) expect((await cut(errors)).mode).toBe(this.#modes.on);
    expect(at.gaveUpAt(this.#kubelet)).toBeUndefined();
    this.#saw('its stream cut four times', this.#modes.on, 'the kubelet opened its stream again each time');
    await cut(5);
    await this.#expectGivenUp('its stream cut a fifth time');
    expect(at.kubeletProxy.streams).toBe(0);
  }

  async #expectGivenUp(situation: string): Promise<void> {
    const at = this.#at;
    const change = await this.#changedTo(this.#modes.givenUp, 'StreamBroke');
    const gaveUp = await at.until('its log says so', () => at.gaveUpAt(this.#kubelet));
    expect(isWithin(change, gaveUp), `${JSON.stringify(change)} and ${gaveUp}`).toBe(true);
    this.#saw(
      situation,
      `${this.#modes.givenUp} (StreamBroke)`,
      `logged at ${new Date(gaveUp).toISOString()}`,
      change,
    );
  }

  async #kubeletRestarted(): Promise<void> {
    const at = this.#at;
    at.kubelet.setGates({ EventedPLEG: true });
    await at.restartKubelet();
    const change = await this.#changedTo(this.#modes.on, 'KubeletRestarted');
    expect(at.kubeletProxy.streams).toBe(1);
    this.#saw(
      'kubelet restarted',
      `${this.#modes.on} (KubeletRestarted)`,
      'the kubelet holds one event stream',
      change,
    );
    if (!this.#facts.hasStreamingLists) return;
    const streamed = at.kubeletProxy.calls.get('StreamContainers');
    await this.#expectLists(false);
    expect(at.kubeletProxy.calls.get('StreamContainers')).toBe(streamed);
    this.#saw('CRIListStreaming off', this.#modes.on, 'the kubelet lists with List calls only');
  }

  async #runtimeKilled(): Promise<void> {
    const at = this.#at;
    if (!this.#runtime.everySubscriberReceivesAll) await this.#outlastEndedStreams();
    for (const pod of ['kept', 'drained']) await at.createPod(pod);
    for (const pod of ['kept', 'drained']) await at.runningOf(pod);
    await at.node.settled();
    const lastEvent = await at.node.lastEvent();
    await at.killRuntime();
    const killed = Date.now();
    await at.until('the runtime was down for 20 s', () => Date.now() - killed >= DOWN_MS);
    const restarting = Date.now();
    await at.restartRuntime();
    await this.#expectGivenUp('runtime killed, down for 20 s, restarted');
    if (!this.#runtime.everySubscriberReceivesAll) return this.#expectLastingGap(killed, restarting);
    // It ends with the first event, which proves that the agent is subscribed again.
    await at.createPod('again');
    await at.runningOf('again');
    const gap = await at.gapOf('stream', { before: lastEvent, down: killed, up: restarting });
    this.#saw(
      'the same, for the agent',
      `one gap of scope stream (${gap.cause})`,
      `the runtime was down for ${Math.round((restarting - killed) / 1_000)} s, the gap lasts ${Math.round((gap.to - gap.from) / 1_000)} s`,
    );
  }

  /**
   * A stream of such a runtime takes one more event with it when it ends. Pods that run until each has taken one leave their events to the kubelet
   * of all later pods.
   */
  async #outlastEndedStreams(): Promise<void> {
    const at = this.#at;
    const ended = at.kubeletProxy.calls.get('GetContainerEvents') ?? 0;
    for (let taken = 0; taken < ended; taken += EVENTS_OF_START) {
      await at.createPod(`taken-${taken}`);
      await at.until('its container runs', async () =>
        (await at.containers()).some(
          ({ labels, state }) =>
            labels['io.kubernetes.pod.name'] === `taken-${taken}-${at.node.name}` && state === RUNNING,
        ),
      );
    }
  }

  /** Expects a lasting gap of an agent that is not subscribed, before and after. */
  async #expectLastingGap(killed: number, restarting: number): Promise<void> {
    await this.#at.node.streamIs('Unsafe');
    const during = (await this.#at.node.gaps('stream')).filter(
      ({ from, to }) => from <= restarting && (to ?? restarting) >= killed,
    );
    expect(new Set(during.map(({ cause }) => cause))).toEqual(new Set(['unsafe']));
    expect(during.at(0)?.from).toBeLessThan(killed);
    expect(during.at(-1)?.to ?? restarting).toBeGreaterThanOrEqual(restarting);
    this.#saw(
      'the same, for the agent',
      'within the gap of scope stream (unsafe)',
      'the agent asked for no events, before and after',
    );
  }

  /** The kubelet's behaviour, now that it has given up, for a pod of before whose container ends. */
  async #containerKilled(): Promise<void> {
    const at = this.#at;
    const consequence = consequenceOf(this.#facts);
    const reason = { hint_lost: 'HintLost', slower: 'FellBack', wrong_until_restart: 'PodsStayWrong' }[
      consequence
    ];
    const { conditions } = await at.modeIs(this.#modes.givenUp);
    const condition = conditions.find(({ type }) => type === 'EventedPLEGInUse');
    expect([condition?.status, condition?.reason]).toEqual(['False', reason]);
    expect(condition?.message).toContain(CONSEQUENCES[consequence]);
    expect(await metric(at.node.agent, `plegwatch_kubelet_fallback{consequence="${consequence}"}`)).toBe(1);

    const id = await at.runningOf('kept');
    await at.killContainer(id);
    if (this.#facts.restartsAfterGivingUp) {
      await at.runningOf('kept', id);
      expect(await this.#staysWrong()).toEqual([]);
      this.#saw('a container killed after that', consequence, 'the kubelet restarted the container');
      await this.#restartedAgain();
      return;
    }
    // By what plegwatch read, which follows the events that it receives, and by a read of our own after that.
    const { everySubscriberReceivesAll: isMeasured } = this.#runtime;
    const killed = Date.now();
    if (isMeasured) {
      const wrong = await this.#lagIs(id, ({ lag_min_ms }) => (lag_min_ms ?? 0) >= WRONG_FOR_MS);
      expect(wrong.lag_max_ms).toBeNull();
    } else await at.until('a minute has passed', () => Date.now() - killed >= WRONG_FOR_MS);
    expect(await at.published('kept')).toMatchObject({
      containerID: `containerd://${id}`,
      state: { running: {} },
    });
    expect((await at.containers()).find((one) => one.id === id)?.state).not.toBe(RUNNING);
    const answer = { event_type: 'STOPPED', kubelet_version: expect.stringContaining(`v${this.#kubelet}.`) };
    expect(await this.#staysWrong()).toMatchObject(isMeasured ? [answer] : []);
    // The node can be drained, and pods of after the fallback are not affected.
    await at.createPod('later');
    await at.runningOf('later');
    for (const pod of ['drained', 'later']) await at.removePod(pod);
    await this.#restartedAgain();
    await at.runningOf('kept', id);
    if (isMeasured) {
      const right = await this.#lagIs(id, ({ lag_max_ms }) => lag_max_ms !== null);
      expect(right.lag_min_ms).toBeGreaterThanOrEqual(WRONG_FOR_MS);
    }
    this.#saw(
      'a container killed after that',
      consequence,
      `published as running for more than ${WRONG_FOR_MS / 1_000} s, until the kubelet restarted`,
    );
    if (!isMeasured)
      this.#saw(
        'its status lag',
        'not measured: no event of the stop was received',
        'the agent asked for no events',
      );
  }

  async #restartedAgain(): Promise<void> {
    await this.#at.restartKubelet();
    await this.#changedTo(this.#modes.on, 'KubeletRestarted');
  }

  /** Waits until the status lag of the stop, which was measured after the fallback, satisfies a condition. */
  #lagIs(id: string, isMeant: (row: LagRow) => boolean): Promise<LagRow> {
    return this.#at.until(`the lag of the stop of ${id}`, async () => {
      const rows = await this.#at.sql<LagRow>(
        `SELECT lag_min_ms, lag_max_ms FROM plegwatch.status_lags
          WHERE node = $1 AND container_id = $2 AND event_type = 'STOPPED' AND kind = 'fallback'`,
        id,
      );
      return rows.find(isMeant);
    });
  }

  /** The answer of the documented question for this node. */
  async #staysWrong(): Promise<Record<string, unknown>[]> {
    const rows = await this.#bed.system.sql(documentedSql('Which pods stayed wrong after a fallback'));
    return rows.filter((row) => row['node'] === this.#at.node.name);
  }
}

/** The containers of the static pods, by lists of the test's own. Each comes with how many lists the agent had asked for by then. */
class StaticStarts {
  readonly #ids = new Map<string, Set<string>>();
  /** Pairs that ran at the same time: the agent's lists by the first look that showed both running, and by the last. */
  readonly #together = new Map<string, { readonly pod: string; readonly first: number; last: number }>();

  look(containers: readonly Container[], lists: number): void {
    const podOf = ({ labels }: Container) => labels['io.kubernetes.pod.name'] ?? '';
    for (const each of containers) {
      const pod = podOf(each);
      this.#ids.set(pod, (this.#ids.get(pod) ?? new Set()).add(each.id));
      const others = containers.filter((one) => podOf(one) === pod && one.id < each.id);
      for (const other of others.filter(({ state }) => state === RUNNING && each.state === RUNNING)) {
        const pair = `${other.id} ${each.id}`;
        const known = this.#together.get(pair);
        if (known === undefined) this.#together.set(pair, { pod, first: lists, last: lists });
        else known.last = lists;
      }
    }
  }

  get pods(): number {
    return this.#ids.size;
  }

  get twice(): string[] {
    return [...this.#ids].filter(([, ids]) => ids.size > 1).map(([pod]) => pod);
  }

  /** The pairs that these two lists of the agent showed running, whatever call was under way at the first look and at the last. */
  get provenTogether(): string[] {
    const proven = [...this.#together.values()].filter(({ first, last }) => last - first >= LISTS_OF_PROOF);
    return [...new Set(proven.map(({ pod }) => pod))];
  }
}

interface LagRow extends Record<string, unknown> {
  readonly lag_min_ms: number | null;
  readonly lag_max_ms: number | null;
}

interface Relists {
  readonly count: number;
  readonly at: number;
}

async function relistsOf({ kubelet }: Stage): Promise<Relists> {
  const line = /^kubelet_pleg_relist_duration_seconds_count (\S+)/m.exec(await kubelet.metrics());
  return { count: Number(line?.[1]), at: performance.now() };
}
