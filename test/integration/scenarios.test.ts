/*
 * Each fault of the simulated runtime, through the whole system: a built agent watches a faulty runtime, and the rows in Postgres
 * are compared with what the runtime recorded.
 *
 * The same rules hold in every scenario (support/findingsOracle.ts). Pods come and go until the finding that a scenario is about
 * has been stored at least once.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, test } from 'vitest';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { delay, drop, dropWhen, duplicate, reorder } from '../../devtools/simulator/eventFaults.ts';
import {
  failingLists,
  hangingLists,
  type ListFault,
  oversizedLists,
  slowLists,
} from '../../devtools/simulator/listFaults.ts';
import { needsRuntime, performIfPossible } from '../../devtools/simulator/podActions.ts';
import { type OddityProbabilities, podScriptOf } from '../../devtools/simulator/podScript.ts';
import { PROFILES } from '../../devtools/simulator/profiles.ts';
import { runRestarts } from '../../devtools/simulator/restarts.ts';
import {
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
  startSimulatedRuntime,
} from '../../devtools/simulator/runtime.ts';
import { type Authority, FakeKubelet, makeAuthority, removeAuthority } from '../support/fakeKubelet.ts';
import { clockSteps, type FaultInjection, stopProcesses } from '../support/faultInjection.ts';
import { FindingsOracle } from '../support/findingsOracle.ts';
import { type Interference, NO_INTERFERENCE, RuntimeTruth, type TimeRange } from '../support/groundTruth.ts';
import { clockArgs } from '../support/movedClock.ts';
import { needs } from '../support/needs.ts';
import type { OracleConditions } from '../support/oracleConditions.ts';
import { type RecordedCall, recordingCalls } from '../support/relists.ts';
import type {
  CheckedKind,
  StoredChange,
  StoredEvent,
  StoredEvidence,
  StoredFinding,
  StoredGap,
  StoredSession,
} from '../support/storedEvidence.ts';
import { LASTING_READER, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** How long an oddity lasts. */
const ODD_MS = 2_500;
/** On a busy machine a scenario takes long to produce its findings. */
const PATIENCE_MS = 300_000;

interface Scenario extends OracleConditions {
  readonly runtime?: Omit<SimulatedRuntimeOptions, 'socket'>;
  readonly odds?: OddityProbabilities;
  /** The mean lifetime of a container. Default 2500. */
  readonly meanMs?: number;
  /** The least number of transitions while the agent watches. Default 160. */
  readonly transitions?: number;
  /** Kinds of findings to wait for. */
  readonly about?: readonly CheckedKind[];
  /** The runtime's process restarts again and again. */
  readonly restarts?: boolean;
  /** Codes of ended sessions to wait for. */
  readonly codes?: readonly status[];
  /** Causes of gaps that must be stored. */
  readonly gaps?: readonly string[];
  readonly inject?: FaultInjection;
  readonly agentSettings?: PlegwatchSettings;
  /** A kubelet proves that its gate is off: without that no agent subscribes to a runtime that subscribers may harm. */
  readonly kubelet?: boolean;
  /** The longest delay of an event. */
  readonly maxHeldMs?: number;
}

const ENOUGH_TRANSITIONS = 160;
const seed = 7;
const often = { seed, probability: 0.2 };

const CODES = [
  status.UNAVAILABLE,
  status.RESOURCE_EXHAUSTED,
  status.INTERNAL,
  status.CANCELLED,
  status.DEADLINE_EXCEEDED,
];

/** Unary answers exceed the message limit, so that lists are streamed. */
const tooLargeAtOnce: ListFault = {
  name: 'list_oversized',
  decide: ({ call }) =>
    call === 'listPodSandbox' || call === 'listContainers' ? { padToBytes: 17 * 1024 ** 2 } : null,
};

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'events are dropped': { runtime: { faults: [drop(often)] }, about: ['missed'] },
  'events are held back': {
    runtime: { faults: [delay({ seed, probability: 0.3 }, 3_000)] },
    about: ['late'],
    maxHeldMs: 3_000,
  },
  'events arrive after they were found missed': {
    runtime: { faults: [delay(often, 9_000)] },
    about: ['late'],
    maxHeldMs: 9_000,
  },
  'events arrive twice': { runtime: { faults: [duplicate(often)] }, about: ['duplicate'] },
  'events overtake each other': {
    runtime: { faults: [reorder({ seed, probability: 0.4 })] },
    about: ['out_of_order'],
  },
  'a backlog is delivered and events are replayed': { runtime: { replay: 20 }, before: 60 },
  'the stream breaks': {
    runtime: { faults: [drop(often)], breakStreamAfterMs: 6_000, breakStreamWith: CODES },
    codes: CODES,
  },
  'the stream ends with OK': {
    runtime: { breakStreamAfterMs: 6_000, breakStreamWith: status.OK },
  },
  'the agent and its reader are stopped': {
    runtime: { faults: [drop(often)] },
    inject: stopProcesses,
    agentSettings: { overdueAfter: '1s' },
    overdueAfterMs: 1_000,
    about: ['missed'],
    gaps: ['agent_stalled', 'reader_stalled', 'broken'],
  },
  'the clock is stepped': {
    runtime: { faults: [drop(often), delay({ seed, probability: 0.2 }, 2_000)] },
    inject: clockSteps,
    about: ['missed', 'late'],
    maxHeldMs: 2_000,
  },
  'lists break off': {
    runtime: {
      profile: { ...PROFILES['containerd-2.4'], listBatch: 2 },
      listFaults: [
        tooLargeAtOnce,
        failingLists({ seed, probability: 0.3 }, status.INTERNAL),
        failingLists({ seed: seed + 1, probability: 0.3 }, status.UNAVAILABLE),
      ],
      faults: [drop(often)],
    },
    blind: true,
    about: ['missed'],
    gaps: ['internal', 'unavailable'],
    meanMs: 8_000,
  },
  'lists hang': {
    runtime: { listFaults: [hangingLists({ seed, probability: 0.05 })], faults: [drop(often)] },
    blind: true,
    hangs: true,
  },
  'lists fail': {
    runtime: {
      listFaults: [failingLists({ seed, probability: 0.4 }, status.UNAVAILABLE)],
      faults: [drop(often)],
    },
    blind: true,
  },
  'lists are slow': {
    runtime: { listFaults: [slowLists({ seed, probability: 0.5 }, 60)], faults: [drop(often)] },
    blind: true,
    about: ['missed'],
    // An agent lists for a hundredth of the time: every few seconds then.
    meanMs: 6_000,
    transitions: 2 * ENOUGH_TRANSITIONS,
  },
  'lists are too large': {
    runtime: { listFaults: [oversizedLists({ seed, probability: 0.2 })], faults: [drop(often)] },
    blind: true,
  },
  'the runtime restarts, and containers end meanwhile': {
    restarts: true,
    transitions: 3 * ENOUGH_TRANSITIONS,
    about: ['unobservable'],
  },
  'lists show wrong states': {
    odds: { 'state-late': 0.25, regression: 0.25, 'sandbox-regression': 0.25, absent: 0.25 },
    about: ['regression'],
  },
  'containers are short-lived': { odds: { 'short-life': 0.5, 'stopped-first': 0.3 }, about: ['short_life'] },
  'starts fail': { odds: { 'failed-start': 0.5 }, about: ['unannounced'] },
  'sandboxes fail': { odds: { 'failed-sandbox': 0.4, 'unlisted-sandbox': 0.2 } },
  'containers and sandboxes exist twice': {
    odds: { 'duplicate-container': 0.4, 'duplicate-sandbox': 0.4 },
    about: ['duplicate_container'],
  },
  'CRI-O removes containers without an event, and starts fail there': {
    runtime: { profile: 'crio-1.33', faults: [drop(often)] },
    odds: { 'removed-together': 0.2, 'removed-running': 0.2, 'failed-start': 0.4 },
    about: ['missed', 'unannounced'],
    // Long enough that most are asked for their status.
    meanMs: 6_000,
  },
  'iSulad, to which the agent subscribes on request, loses events, and starts fail there': {
    runtime: { profile: 'isulad-2.1.6', faults: [drop(often)] },
    agentSettings: { subscribe: 'always' },
    kubelet: true,
    odds: { 'failed-start': 0.4, 'removed-running': 0.2 },
    about: ['missed', 'unannounced'],
  },
  'containers are UNKNOWN for a while': {
    runtime: { faults: [drop(often)] },
    odds: { unknown: 0.6 },
    about: ['missed'],
  },
  'events announce what did not happen': {
    odds: { 'spurious-stopped': 0.4, 'spurious-deleted': 0.4 },
    about: ['spurious'],
  },
  'another subscriber freezes again and again': {
    runtime: { profile: 'crio-1.36', neighbourFreezes: { everyMs: 3_000, forMs: 20_000 } },
    meanMs: 500,
    about: ['silent_stream', 'missed', 'late'],
    maxHeldMs: 20_000,
  },
  'every event is lost': { runtime: { faults: [dropWhen(() => 'drop')] }, about: ['silent_stream'] },
};

const SLOTS = 5;

let system: System;
let authority: Authority;
let kubelet: FakeKubelet;
let scenarios = 0;

needs('redis-server', 'postgres')('the findings are right and complete when', () => {
  beforeAll(async () => {
    authority = makeAuthority();
    kubelet = await FakeKubelet.start(authority);
    system = await System.start({ kube: false });
    await system.controller();
  });
  afterAll(async () => {
    try {
      await system?.expectNoDifference();
    } finally {
      await system?.stop();
      await kubelet?.stop();
      removeAuthority(authority);
    }
  });

  test.concurrent.for(Object.entries(SCENARIOS))(
    '%s',
    { timeout: 3 * PATIENCE_MS },
    async ([, scenario], { expect: its }) => {
      scenarios += 1;
      const node = `node-${scenarios}`;
      const calls: RecordedCall[] = [];
      const listFaults = scenario.runtime?.listFaults ?? [];
      const runtime = await startSimulatedRuntime({
        ...scenario.runtime,
        listFaults: [...listFaults, recordingCalls(listFaults, calls)],
        seed,
        socket: system.folder(`${node}.sock`),
        keepTruth: true,
      });
      try {
        const interference = await watch(runtime, node, scenario);
        const truth = new RuntimeTruth(runtime.truth.entries, calls, interference);
        const evidence = await evidenceOf(node);
        const removesSilently = !runtime.profile.announcesSandboxRemoval;
        const restoresSilently = runtime.profile.restores === 'end_only';
        const conditions = { ...scenario, removesSilently, restoresSilently };
        const oracle = new FindingsOracle(truth, evidence, conditions);
        its(oracle.wrong()).toEqual([]);
        its(oracle.overlooked()).toEqual([]);
        its(evidence.gaps.map(({ cause }) => cause)).toEqual(its.arrayContaining([...(scenario.gaps ?? [])]));
        its(await system.undeclaredGaps(node)).toEqual([]);
      } finally {
        await runtime.stop();
      }
    },
  );
});

/** Lets an agent watch until enough has happened, every container has ended, and everything is stored. */
async function watch(runtime: SimulatedRuntime, node: string, scenario: Scenario): Promise<Interference> {
  const ending = new AbortController();
  const slots = Array.from({ length: SLOTS }, (_, slot) => runPods(runtime, slot, scenario, ending.signal));
  const transitions = () => runtime.truth.entries.filter(({ what }) => what === 'transition').length;
  const reached = (count: number) =>
    waitFor(`${count} transitions`, () => transitions() >= count, PATIENCE_MS);
  await reached(scenario.before ?? 0);
  const clock = system.folder(`${node}.clock`);
  const kubeletSettings = { kubeletUrl: kubelet.url.href, kubeletCaFile: authority.caFile };
  const settings = {
    ...(scenario.inject === stopProcesses ? {} : LASTING_READER),
    ...scenario.agentSettings,
    ...(scenario.kubelet === true ? kubeletSettings : {}),
  };
  const agent = await system.agent(node, runtime.socket, settings, clockArgs(clock));
  const plan = { everyMs: 6_000, downMs: 800, exits: 0.5 };
  const restarting = scenario.restarts ? runRestarts(runtime, plan, ending.signal) : Promise.resolve();
  await waitFor('the agent is known', () => isKnown(node), PATIENCE_MS);
  const injected = scenario.inject?.({ agent, runtime, clock });
  await reached(transitions() + (scenario.transitions ?? ENOUGH_TRANSITIONS));
  const interference = await injected;
  for (const kind of scenario.about ?? [])
    await waitFor(`a ${kind} is stored`, () => isStored(node, kind), PATIENCE_MS);
  for (const code of scenario.codes ?? [])
    await waitFor(`a session ends with ${status[code]}`, () => hasEnded(node, status[code]), PATIENCE_MS);
  ending.abort();
  await restarting;
  // The pods' last actions need the runtime, which the end of the restarts may have left down.
  await runtime.comeUp();
  await Promise.all(slots);
  await pause(scenario.maxHeldMs ?? 0);
  await settled(agent, scenario);
  await system.end(agent);
  return interference ?? NO_INTERFERENCE;
}

/** Runs one pod after another, each to its end. */
async function runPods(
  runtime: SimulatedRuntime,
  slot: number,
  { odds = {}, meanMs = 2_500 }: Scenario,
  ending: AbortSignal,
): Promise<void> {
  for (let number = 0; !ending.aborted; number += 1) {
    const begun = performance.now();
    for (const { at, act } of podScriptOf({
      seed,
      slot,
      number,
      meanMs,
      restarts: 0.4,
      odds,
      oddForMs: ODD_MS,
    })) {
      await pause(Math.max(0, begun + at - performance.now()));
      if (needsRuntime(act)) await waitFor('the runtime is up', () => !runtime.core.isDown);
      performIfPossible(runtime.pods, act);
    }
  }
}

const isKnown = (node: string) => some('SELECT FROM plegwatch.epochs WHERE node = $1 LIMIT 1', node);

const hasEnded = (node: string, code: string) =>
  some('SELECT FROM plegwatch.stream_sessions WHERE node = $1 AND code = $2 LIMIT 1', node, code);

const isStored = (node: string, kind: CheckedKind) =>
  some('SELECT FROM plegwatch.findings WHERE node = $1 AND kind = $2 LIMIT 1', node, kind);

/** Whether a query finds anything, for `until`. */
const some = async (text: string, ...values: readonly string[]): Promise<boolean> =>
  (await system.sql(text, ...values)).length > 0;

async function settled(agent: LocalPlegwatch, { hangs = false }: Scenario): Promise<void> {
  const relists = async () => (await metric(agent, 'plegwatch_relist_duration_seconds_count')) ?? 0;
  const before = await relists();
  const none = (name: string) => async () => (await metric(agent, name)) === 0;
  if (!hangs) {
    await waitFor('two more relists', async () => (await relists()) > before + 1, PATIENCE_MS);
    await waitFor('no event is pending', none('plegwatch_pending_events'), PATIENCE_MS);
  }
  await waitFor('everything is acknowledged', none('plegwatch_unacked_records'));
}

async function evidenceOf(node: string): Promise<StoredEvidence> {
  const [findings, events, gaps, firstLists, changes, sessions] = await Promise.all([
    system.sql<StoredFinding>(
      `SELECT f.kind, f.event_type AS type, f.cause, f.container_id AS id, f.proof,
              extract(epoch FROM f.detected_at)::float8 * 1000 AS detected,
              extract(epoch FROM f.resolved_at)::float8 * 1000 AS resolved,
              extract(epoch FROM e.started_at)::float8 * 1000 + (f.proof ->> 'drainedTo')::float8 / 1000 AS drained
         FROM plegwatch.findings f JOIN plegwatch.epochs e ON e.node = f.node AND e.epoch = f.epoch WHERE f.node = $1`,
      node,
    ),
    system.sql<StoredEvent>(
      `SELECT container_id AS id, event_type AS type, extract(epoch FROM received_at)::float8 * 1000 AS received
         FROM plegwatch.container_events WHERE node = $1`,
      node,
    ),
    system.sql<StoredGap>(
      `SELECT scope, cause, extract(epoch FROM from_at)::float8 * 1000 AS from, extract(epoch FROM to_at)::float8 * 1000 AS to
         FROM plegwatch.gaps WHERE node = $1 AND scope <> 'findings'`,
      node,
    ),
    system.sql<TimeRange & Record<string, unknown>>(
      `SELECT extract(epoch FROM from_at)::float8 * 1000 AS from, extract(epoch FROM to_at)::float8 * 1000 AS to
         FROM plegwatch.gaps WHERE node = $1 AND cause = 'first_lists'`,
      node,
    ),
    system.sql<StoredChange>(
      `SELECT container_id AS id, old_state AS old, new_state AS new,
              extract(epoch FROM window_from)::float8 * 1000 AS from, extract(epoch FROM window_to)::float8 * 1000 AS to
         FROM plegwatch.relist_changes WHERE node = $1`,
      node,
    ),
    system.sql<StoredSession>(
      `SELECT extract(epoch FROM opened_at)::float8 * 1000 AS opened,
              extract(epoch FROM closed_at)::float8 * 1000 AS closed, code
         FROM plegwatch.stream_sessions WHERE node = $1 ORDER BY opened_at`,
      node,
    ),
  ]);
  return { findings, events, gaps, firstLists, changes, sessions };
}
