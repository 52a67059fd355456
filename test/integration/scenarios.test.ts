/*
 * Each fault of the simulated runtime, through the whole system: a built agent watches a runtime that lives and misbehaves,
 * and what SQL says of it in the end is held against what the runtime wrote down of itself.
 *
 * The same rules hold in every scenario, whatever its fault: see support/story.ts. Lives go on until what a scenario is
 * about was told at least once.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
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
import { clockSteps, standstills, type Trouble } from '../support/faultInjection.ts';
import { type Circumstances, Story } from '../support/findingsOracle.ts';
import { Happened, type Interference, UNTROUBLED } from '../support/groundTruth.ts';
import { clockArgs } from '../support/movedClock.ts';
import { needs } from '../support/needs.ts';
import { type NoticedCall, noticing } from '../support/relists.ts';
import type { Change, Evidence, Finding, Gap, Kind, Session, Stored } from '../support/storedEvidence.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** How long what is odd lasts. */
const ODD = 2_500;
/** A busy machine takes long to bring about what a scenario is about. */
const PATIENCE = 150_000;

interface Scenario extends Circumstances {
  readonly runtime?: Omit<SimulatedRuntimeOptions, 'socket'>;
  readonly odds?: OddityProbabilities;
  /** How long a life lasts, on average. Default 2500. */
  readonly meanMs?: number;
  /** So many while the agent watches, at least. Default 160. */
  readonly transitions?: number;
  /** Kinds that are told at least once: lives go on until then. */
  readonly about?: readonly Kind[];
  /** The process of the runtime goes away again and again. */
  readonly restarts?: boolean;
  /** Sessions end with each of these at least once: lives go on until then. */
  readonly codes?: readonly status[];
  /** Causes of gaps that are told at least once. */
  readonly gaps?: readonly string[];
  /** What befalls it from outside. */
  readonly trouble?: Trouble;
  /** Of the agent. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The longest that an event is held back. */
  readonly heldMs?: number;
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

/** Answers that come as a whole are larger than a message may be: lists are streamed. */
const tooLargeAtOnce: ListFault = {
  name: 'list_oversized',
  decide: ({ call }) =>
    call === 'listPodSandbox' || call === 'listContainers' ? { padToBytes: 17 * 1024 ** 2 } : null,
};

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'events are dropped': { runtime: { faults: [drop(often)] }, about: ['missed'] },
  'events are held back': {
    runtime: { faults: [delay({ seed, probability: 0.3 }, 2_000)] },
    about: ['late'],
    heldMs: 2_000,
  },
  'events come after their verdict': {
    runtime: { faults: [delay(often, 9_000)] },
    about: ['late'],
    heldMs: 9_000,
  },
  'events come twice': { runtime: { faults: [duplicate(often)] }, about: ['duplicate'] },
  'events overtake each other': {
    runtime: { faults: [reorder({ seed, probability: 0.4 })] },
    about: ['out_of_order'],
  },
  'there is a backlog, and events are sent again': { runtime: { replay: 20 }, before: 60 },
  'the stream breaks': {
    runtime: { faults: [drop(often)], breakStreamAfterMs: 6_000, breakStreamWith: CODES },
    codes: CODES,
  },
  'the stream ends in order': {
    runtime: { breakStreamAfterMs: 6_000, breakStreamWith: status.OK },
  },
  'the agent stands still': {
    runtime: { faults: [drop(often)] },
    trouble: standstills,
    settings: { overdueAfter: '1s' },
    graceMs: 1_000,
    about: ['missed'],
    gaps: ['agent_stalled', 'reader_stalled', 'broken'],
  },
  'the clock is stepped': {
    runtime: { faults: [drop(often), delay({ seed, probability: 0.2 }, 2_000)] },
    trouble: clockSteps,
    about: ['missed', 'late'],
    heldMs: 2_000,
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
    // What breaks off then lacks what the list before has shown.
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
  'lists show what is not so': {
    odds: { 'state-late': 0.25, regression: 0.25, 'sandbox-regression': 0.25, absent: 0.25 },
    about: ['regression'],
  },
  'containers are short': { odds: { 'short-life': 0.5, 'stopped-first': 0.3 }, about: ['short_life'] },
  'starts fail': { odds: { 'failed-start': 0.5 }, about: ['unannounced'] },
  'sandboxes fail': { odds: { 'failed-sandbox': 0.4, 'unlisted-sandbox': 0.2 } },
  'containers and sandboxes are there twice': {
    odds: { 'duplicate-container': 0.4, 'duplicate-sandbox': 0.4 },
    about: ['duplicate_container'],
  },
  'a CRI-O removes containers without a word': {
    runtime: { profile: 'crio-1.33', faults: [drop({ ...often, types: ['STARTED', 'STOPPED'] })] },
    odds: { 'removed-together': 0.6 },
    removedTogether: true,
    about: ['missed', 'unannounced'],
  },
  'containers are UNKNOWN for a while': {
    runtime: { faults: [drop(often)] },
    odds: { unknown: 0.6 },
    about: ['missed'],
  },
  'events tell of what did not happen': {
    odds: { 'spurious-stopped': 0.4, 'spurious-deleted': 0.4 },
    about: ['spurious'],
  },
  'every event is lost': { runtime: { faults: [dropWhen(() => 'drop')] }, about: ['silent_stream'] },
};

const SLOTS = 5;

let system: System;
let scenarios = 0;

needs('redis-server', 'postgres')('the whole system on a runtime where', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    await system.controller();
  });
  afterAll(() => system?.stop());

  test.concurrent.for(Object.entries(SCENARIOS))(
    '%s',
    { timeout: 3 * PATIENCE },
    async ([, scenario], { expect: its }) => {
      scenarios += 1;
      const node = `node-${scenarios}`;
      const calls: NoticedCall[] = [];
      const listFaults = scenario.runtime?.listFaults ?? [];
      const runtime = await startSimulatedRuntime({
        ...scenario.runtime,
        listFaults: [...listFaults, noticing(listFaults, calls)],
        seed,
        socket: system.folder(`${node}.sock`),
        keepTruth: true,
      });
      try {
        const interference = await watch(runtime, node, scenario);
        const happened = new Happened(runtime.truth.entries, calls, interference);
        const evidence = await evidenceOf(node);
        const story = new Story(happened, evidence, scenario);
        its(story.wrong()).toEqual([]);
        its(story.overlooked()).toEqual([]);
        its(evidence.gaps.map(({ cause }) => cause)).toEqual(its.arrayContaining([...(scenario.gaps ?? [])]));
      } finally {
        await runtime.stop();
      }
    },
  );
});

/** Lets an agent watch lives until enough has happened, all of them are over, and all of it is told and stored. */
async function watch(runtime: SimulatedRuntime, node: string, scenario: Scenario): Promise<Interference> {
  const ending = new AbortController();
  const living = Array.from({ length: SLOTS }, (_, slot) => live(runtime, slot, scenario, ending.signal));
  const transitions = () => runtime.truth.entries.filter(({ what }) => what === 'transition').length;
  const lived = (count: number) =>
    waitFor(`${count} transitions`, () => transitions() >= count || undefined, PATIENCE);
  await lived(scenario.before ?? 0);
  const clock = system.folder(`${node}.clock`);
  const agent = await system.agent(node, runtime.socket, scenario.settings, clockArgs(clock));
  const plan = { everyMs: 6_000, downMs: 800, exits: 0.5 };
  const restarting = scenario.restarts ? runRestarts(runtime, plan, ending.signal) : Promise.resolve();
  // The store takes the time of an agent's start from the first that it hears of it.
  await waitFor('the agent is known', () => isKnown(node), PATIENCE);
  const troubled = scenario.trouble?.({ agent, runtime, clock });
  await lived(transitions() + (scenario.transitions ?? ENOUGH_TRANSITIONS));
  const interference = await troubled;
  for (const kind of scenario.about ?? [])
    await waitFor(`a ${kind} is told`, () => isTold(node, kind), PATIENCE);
  for (const code of scenario.codes ?? [])
    await waitFor(`a session ends with ${status[code]}`, () => hasEnded(node, status[code]), PATIENCE);
  ending.abort();
  await Promise.all([...living, restarting]);
  await runtime.comeUp();
  await pause(scenario.heldMs ?? 0);
  await settled(agent, scenario);
  await system.end(agent);
  return interference ?? UNTROUBLED;
}

/** One life after another, each to its end. */
async function live(
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
      oddForMs: ODD,
    })) {
      await pause(Math.max(0, begun + at - performance.now()));
      if (needsRuntime(act)) await waitFor('the runtime is up', () => !runtime.core.isDown || undefined);
      performIfPossible(runtime.pods, act);
    }
  }
}

const isKnown = (node: string) => some('SELECT FROM plegwatch.epochs WHERE node = $1 LIMIT 1', node);

const hasEnded = (node: string, code: string) =>
  some('SELECT FROM plegwatch.stream_sessions WHERE node = $1 AND code = $2 LIMIT 1', node, code);

const isTold = (node: string, kind: Kind) =>
  some('SELECT FROM plegwatch.findings WHERE node = $1 AND kind = $2 LIMIT 1', node, kind);

/** Whether a query finds anything, for `until`. */
const some = async (text: string, ...values: readonly string[]): Promise<true | undefined> =>
  (await system.sql(text, ...values)).length > 0 || undefined;

async function settled(agent: LocalPlegwatch, { hangs = false }: Scenario): Promise<void> {
  const relists = async () => (await metric(agent, 'plegwatch_relist_duration_seconds_count')) ?? 0;
  const before = await relists();
  const none = (name: string) => async () => ((await metric(agent, name)) === 0 ? true : undefined);
  if (!hangs) {
    // Those of a busy machine are further apart: they may take one hundredth of its time.
    await waitFor(
      'two more relists',
      async () => ((await relists()) > before + 1 ? true : undefined),
      PATIENCE,
    );
    await waitFor('every event that is due has its verdict', none('plegwatch_pending_events'), PATIENCE);
  }
  await waitFor('everything is acknowledged', none('plegwatch_unacked_records'));
}

async function evidenceOf(node: string): Promise<Evidence> {
  const [findings, events, gaps, changes, sessions] = await Promise.all([
    system.sql<Finding>(
      `SELECT kind, event_type AS type, cause, container_id AS id, proof,
              extract(epoch FROM detected_at)::float8 * 1000 AS detected,
              extract(epoch FROM resolved_at)::float8 * 1000 AS resolved
         FROM plegwatch.findings WHERE node = $1`,
      node,
    ),
    system.sql<Stored>(
      `SELECT container_id AS id, event_type AS type, extract(epoch FROM received_at)::float8 * 1000 AS received
         FROM plegwatch.container_events WHERE node = $1`,
      node,
    ),
    system.sql<Gap>(
      `SELECT scope, cause, extract(epoch FROM from_at)::float8 * 1000 AS from, extract(epoch FROM to_at)::float8 * 1000 AS to
         FROM plegwatch.gaps WHERE node = $1`,
      node,
    ),
    system.sql<Change>(
      `SELECT container_id AS id, old_state AS old, new_state AS new,
              extract(epoch FROM window_from)::float8 * 1000 AS from, extract(epoch FROM window_to)::float8 * 1000 AS to
         FROM plegwatch.relist_changes WHERE node = $1`,
      node,
    ),
    system.sql<Session>(
      `SELECT extract(epoch FROM opened_at)::float8 * 1000 AS opened,
              extract(epoch FROM closed_at)::float8 * 1000 AS closed, code
         FROM plegwatch.stream_sessions WHERE node = $1 ORDER BY opened_at`,
      node,
    ),
  ]);
  return { findings, events, gaps, changes, sessions };
}
