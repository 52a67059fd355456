/*
 * Timelines: the inputs of the comparison as values, and what it made of them. For tests.
 *
 *   compare([listed(0, {}), opened(1), received(2, 's1', 'CREATED'), …], { until: 60 })  ──►  { missed: ['c1 STARTED'], … }
 *
 * Times are seconds on the monotonic clock. An id that begins with `s` is a sandbox, one with `c` a container of the
 * sandbox with the same number. `s0` is there in every list. Between the steps time passes as in an agent: a tick every
 * quarter of a second, and a reader that has drained everything. Every record is checked against its schema, and the
 * counters are added up.
 */

import type { ComparisonCounters, ProvenStreamState } from '../../src/agent/compare/comparison.ts';
import { Comparison } from '../../src/agent/compare/comparison.ts';
import type { Emission } from '../../src/agent/compare/emitter.ts';
import type { UnobservableCause } from '../../src/agent/compare/unobservableReason.ts';
import type { PlegProfile } from '../../src/protocol/eventProfile.ts';
import type {
  ExactTimes,
  KubeletContainer,
  KubeletPod,
  ListAnswer,
  ListedItem,
  ShownState,
  ShownStatus,
} from '../../src/protocol/observation.ts';
import {
  type ContainerIdentity,
  ContainerIdentitySchema,
  EVENT_TYPES,
  type EventType,
  type KubeletLagMinute,
  parseRecord,
  type RecordOf,
} from '../../src/protocol/record.ts';
import { type Mono, millis, mono } from '../../src/protocol/units.ts';
import { parse } from '../../src/protocol/validation.ts';

export const CONTAINERD: PlegProfile = {
  sandboxEvents: EVENT_TYPES,
  containerEvents: EVENT_TYPES,
  announcesSandboxRemoval: true,
  restores: 'all',
  stoppedMayComeFirst: true,
  failedStartsUnannounced: true,
  failedStartsMayBeUnknown: false,
  failedStartsEndLater: false,
  exitsDatedWhenNoticed: false,
  sandboxesListedBeforeStart: false,
  lead: millis(10_000),
};

export const CONTAINERD_2_4: PlegProfile = { ...CONTAINERD, failedStartsMayBeUnknown: true };

/** A later runtime that may restore pods. */
export const CONTAINERD_2_5: PlegProfile = { ...CONTAINERD_2_4, restores: 'unknown' };

export const CRIO: PlegProfile = {
  sandboxEvents: ['STARTED', 'STOPPED'],
  containerEvents: EVENT_TYPES,
  announcesSandboxRemoval: false,
  restores: 'end_only',
  stoppedMayComeFirst: true,
  failedStartsUnannounced: false,
  failedStartsMayBeUnknown: false,
  failedStartsEndLater: true,
  exitsDatedWhenNoticed: false,
  sandboxesListedBeforeStart: false,
  lead: millis(0),
};

export const ISULAD: PlegProfile = {
  sandboxEvents: ['CREATED', 'STOPPED', 'DELETED'],
  containerEvents: EVENT_TYPES,
  announcesSandboxRemoval: true,
  restores: 'all',
  stoppedMayComeFirst: false,
  failedStartsUnannounced: true,
  failedStartsMayBeUnknown: false,
  failedStartsEndLater: false,
  exitsDatedWhenNoticed: true,
  sandboxesListedBeforeStart: true,
  lead: millis(0),
};

/** The wall clock at 0, in seconds. */
const WALL = 1_700_000_000;
const TICK = 0.25;

interface TimelineState {
  readonly comparison: Comparison;
  readonly sandboxes: RecognisedItems;
  readonly containers: RecognisedItems;
  session: number;
  /** While true the reader drains nothing. */
  readerStalled: boolean;
  /** Seconds by which the wall clock was stepped. */
  offset: number;
}

export interface TimelineStep {
  readonly at: number;
  readonly act: (state: TimelineState, at: number) => void;
}

export const seconds = (s: number): Mono => mono(Math.round(s * 1e6));
const wallNs = (s: number): bigint => BigInt(Math.round((WALL + s) * 1e6)) * 1000n;

/** An id's identity. */
export function identityOf(id: string): ContainerIdentity {
  const isSandbox = id.startsWith('s');
  const number = /\d+/.exec(id)?.[0] ?? '';
  const container = isSandbox ? '' : 'app';
  return {
    id,
    sandbox: `s${number}`,
    isSandbox,
    podUid: `u${number}`,
    namespace: 'default',
    pod: `p${number}`,
    container,
    attempt: id.endsWith('b') ? 1 : 0,
  };
}

/** Exact times from seconds; 0 where one is left out. `offset` is how far the wall clock had been stepped by then. */
export function times(at: { created?: number; started?: number; finished?: number }, offset = 0): ExactTimes {
  const ns = (s: number | undefined) => (s === undefined ? 0n : wallNs(s + offset));
  return {
    createdNs: ns(at.created),
    startedNs: ns(at.started),
    finishedNs: ns(at.finished),
    exitCode: 0,
    reason: '',
  };
}

// Steps.

export const opened = (at: number, session = 1): TimelineStep => ({
  at,
  act: (state) => {
    state.session = session;
    state.comparison.subscribed(session, seconds(at), wallNs(at + state.offset));
  },
});

export const closed = (at: number, state: 'down' | 'absent' = 'down'): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.unsubscribed(seconds(at), state),
});

export interface EventDetails {
  readonly session?: number;
  /** When it was built, in seconds; by default when it was received. */
  readonly built?: number;
  readonly times?: ExactTimes;
  /** The statuses of other ids in it. */
  readonly others?: readonly ShownStatus[];
  /** The event carries no identity. */
  readonly nameless?: boolean;
}

export function received(
  at: number,
  id: string,
  type: EventType | number,
  how: EventDetails = {},
): TimelineStep {
  const act = (state: TimelineState) =>
    state.comparison.received({
      session: how.session ?? state.session,
      received: seconds(at),
      id,
      type: typeof type === 'number' ? type : EVENT_TYPES.indexOf(type),
      createdNs: wallNs((how.built ?? at) + state.offset),
      hasSandboxStatus: how.nameless !== true,
      object: how.nameless === true ? null : identityOf(id),
      times: how.times ?? null,
      others: how.others ?? [],
    });
  return { at, act };
}

/** Events of one id at the same time. */
export const announced = (at: number, id: string, ...types: readonly EventType[]): TimelineStep[] =>
  types.map((type) => received(at, id, type));

export interface ListDetails {
  /** How long each of the two calls took, in seconds. */
  readonly took?: number;
  /** How long after its end the answer is compared. */
  readonly compared?: number;
  /** An item could not be read. */
  readonly partial?: boolean;
}

/** A relist: both calls, one after the other. `at` is the start of the first. */
export function listed(
  at: number,
  shown: Readonly<Record<string, ShownState>>,
  how: ListDetails = {},
): TimelineStep {
  const { took = 0.01, compared = 0, partial = false } = how;
  const answer = (known: RecognisedItems, start: number, isSandbox: boolean): ListAnswer => {
    const items = Object.entries({ s0: 'running' as const, ...shown })
      .map(([id, state]) => ({ object: identityOf(id), state }))
      .filter(({ object }) => object.isSandbox === isSandbox);
    return { start: seconds(start), end: seconds(start + took), items: known.of(items), whole: !partial };
  };
  return {
    at: at + 2 * took + compared,
    act: ({ comparison, sandboxes, containers }) =>
      comparison.relisted({
        sandboxes: answer(sandboxes, at, true),
        containers: answer(containers, at + took, false),
      }),
  };
}

/** Relists that show the same. */
export const listedAlike = (
  shown: Readonly<Record<string, ShownState>>,
  ...at: readonly number[]
): TimelineStep[] => at.map((each) => listed(each, shown));

/**
 * The answers of one list call as an agent reads them: an unchanged item is the same object, and an unchanged answer the same
 * map. Here that also holds for items that were absent in between.
 */
export class RecognisedItems {
  readonly #known = new Map<string, ListedItem>();
  #last: ReadonlyMap<string, ListedItem> = new Map();

  of(shown: readonly ListedItem[]): ReadonlyMap<string, ListedItem> {
    const items = shown.map((item) => this.#recognised(item));
    const isTheSame =
      items.length === this.#last.size && items.every((item) => this.#last.get(item.object.id) === item);
    if (!isTheSame) this.#last = new Map(items.map((item) => [item.object.id, item]));
    return this.#last;
  }

  #recognised(item: ListedItem): ListedItem {
    const known = this.#known.get(item.object.id);
    if (known?.state === item.state) return known;
    this.#known.set(item.object.id, item);
    return item;
  }
}

/** The answer of ContainerStatus; null: it has no such container. `asked` is when the call began. */
export const status = (at: number, id: string, exact: ExactTimes | null, asked = at): TimelineStep => ({
  at,
  act: ({ comparison }) =>
    comparison.answered(
      exact === null
        ? { id, asked: seconds(asked), at: seconds(at), found: false, reason: 'NOT_FOUND' }
        : { id, asked: seconds(asked), at: seconds(at), found: true, times: exact, sandbox: null },
    ),
});

/** The answer of PodSandboxStatus. */
export const sandboxStatus = (
  at: number,
  id: string,
  state: 'running' | 'exited',
  created: number,
): TimelineStep => ({
  at,
  act: ({ comparison }) =>
    comparison.answered({
      id,
      asked: seconds(at),
      at: seconds(at),
      found: true,
      times: times({ created }),
      sandbox: state,
    }),
});

/** Nobody watched until this moment. */
export const streamGap = (at: number, cause: UnobservableCause = 'agent_stalled'): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.streamGap(seconds(at), cause),
});

/** Something came that could not be read as an event. */
export const eventLost = (at: number): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.eventsLost(seconds(at), 'malformed_event'),
});

/** The reader is stalled: what comes stays in its socket. */
export const readerStalled = (from: number, to: number): readonly TimelineStep[] => [
  { at: from, act: (state) => Object.assign(state, { readerStalled: true }) },
  { at: to, act: (state) => Object.assign(state, { readerStalled: false }) },
];

/** The wall clock is set, forward or back. */
export const clockStepped = (at: number, by: number): TimelineStep => ({
  at,
  act: (state) => {
    state.offset += by;
  },
});

export const runtimeReplaced = (at: number, profile: PlegProfile): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.runtimeReplaced(profile),
});

// The kubelet's own status.

/** The watch of the kubelet's pods is opened, and has reported all of them. */
export const podsWatched = (at: number): readonly TimelineStep[] => [
  { at, act: ({ comparison }) => comparison.kubeletShowed({ is: 'opened', at: seconds(at) }) },
  { at, act: ({ comparison }) => comparison.kubeletShowed({ is: 'synced', at: seconds(at) }) },
];

export const podsBroken = (at: number): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.kubeletShowed({ is: 'broken', at: seconds(at) }),
});

export interface PodDetails {
  readonly terminating?: boolean;
  /** The names of its containers, by id; by default they are all named alike. */
  readonly names?: Readonly<Record<string, string>>;
  /** The names of containers that it has still to create. */
  readonly uncreated?: readonly string[];
}

/** A pod's status in which each container has this state. */
export const podShown = (
  at: number,
  podUid: string,
  shown: Readonly<Record<string, KubeletContainer['state']>>,
  how: PodDetails = {},
): TimelineStep => ({
  at,
  act: ({ comparison }) =>
    comparison.kubeletShowed({ is: 'pod', at: seconds(at), pod: kubeletPod(podUid, shown, how) }),
});

export const podEnded = (at: number, podUid: string): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.kubeletShowed({ is: 'removed', at: seconds(at), podUid }),
});

/** The watch reports something of a pod that cannot be read. */
export const podUnknown = (at: number, podUid: string): TimelineStep => ({
  at,
  act: ({ comparison }) => comparison.kubeletShowed({ is: 'unknown', at: seconds(at), podUid }),
});

/** The kubelet's answer to a GetPod; null: it has no such pod. It takes a hundredth of a second. */
export const podAnswered = (
  asked: number,
  podUid: string,
  shown: Readonly<Record<string, KubeletContainer['state']>> | null,
  how: PodDetails = {},
): TimelineStep => ({
  at: asked + 0.01,
  act: ({ comparison }) => {
    const call = { podUid, asked: seconds(asked), at: seconds(asked + 0.01) };
    comparison.kubeletAnswered(
      shown === null
        ? { ...call, found: false, reason: 'NOT_FOUND' }
        : { ...call, found: true, pod: kubeletPod(podUid, shown, how) },
    );
  },
});

const kubeletPod = (
  podUid: string,
  shown: Readonly<Record<string, KubeletContainer['state']>>,
  { terminating = false, names = {}, uncreated = [] }: PodDetails,
): KubeletPod => ({
  podUid,
  namespace: 'default',
  pod: podUid.replace('u', 'p'),
  isTerminating: terminating,
  containers: Object.entries(shown).map(([id, state]) => ({ id, name: names[id] ?? 'app', state })),
  ...(uncreated.length === 0 ? {} : { uncreated }),
});

/** The content of lists: the sandbox s1, and its container c1. */
export const S1_RUNNING = { s1: 'running' } as const;
export const S1_EXITED = { s1: 'exited' } as const;
export const C1_CREATED = { s1: 'running', c1: 'created' } as const;
export const C1_RUNNING = { s1: 'running', c1: 'running' } as const;
export const C1_EXITED = { s1: 'running', c1: 'exited' } as const;

/** A stream that is covered from the list at 3 s on. */
export const covered: readonly TimelineStep[] = [
  listed(0, {}),
  opened(1),
  received(2, 's0', 'STARTED', { built: 1.9 }),
  listed(3, {}),
];
/** The beginning of a stream that is covered from the next list on. */
export const armed: readonly TimelineStep[] = [listed(0, {}), opened(1), received(2, 's0', 'STARTED')];

// Outcomes.

export interface TimelineOutcome {
  /** Missed and never resolved, as `<id> <type>`, in order. */
  readonly missed: readonly string[];
  /** Missed, whether resolved later or not. */
  readonly everMissed: readonly string[];
  /** As `<id> <type> <cause>`. */
  readonly unobservable: readonly string[];
  readonly findings: readonly RecordOf<'finding'>[];
  readonly records: readonly Emission['record'][];
  readonly counters: Readonly<ComparisonCounters>;
  readonly pending: number;
  readonly queries: readonly string[];
  /** When the kubelet was to be asked for which pod, as `<seconds> <uid>`. */
  readonly podQueries: readonly string[];
  readonly kubeletLag: KubeletLagMinute | null;
  readonly kubeletCounters: Comparison['kubeletCounters'];
  readonly stream: ProvenStreamState | null;
  /** Until then everything was decided. */
  readonly decided: Mono;
}

export interface TimelineSettings {
  /** In seconds. */
  readonly until: number;
  readonly profile?: PlegProfile;
  readonly overdueAfter?: number;
  readonly missedAfter?: number;
  readonly kubeletLateAfter?: number;
}

/** Lets time pass from 0 to `until`, with the steps in their order, and returns the outcome. */
export function compare(steps: readonly TimelineStep[], settings: TimelineSettings): TimelineOutcome {
  const { until, profile = CONTAINERD, overdueAfter = 2, missedAfter = 30, kubeletLateAfter = 10 } = settings;
  let minted = 0;
  const comparison = new Comparison({
    epochStart: mono(0),
    overdueAfter: millis(overdueAfter * 1000),
    missedAfter: millis(missedAfter * 1000),
    kubeletLateAfter: millis(kubeletLateAfter * 1000),
    lateAfter: millis(1_000),
    profile,
    mintId: () => {
      minted += 1;
      return `00000000-0000-4000-8000-${String(minted).padStart(12, '0')}`;
    },
  });
  comparison.unsubscribed(mono(0), 'down');
  const state: TimelineState = {
    comparison,
    sandboxes: new RecognisedItems(),
    containers: new RecognisedItems(),
    session: 0,
    readerStalled: false,
    offset: 0,
  };
  const agenda = [...steps, ...ticks(until)].sort((a, b) => a.at - b.at);
  const emissions: Emission[] = [];
  const queries: string[] = [];
  const podQueries: string[] = [];
  let decided = comparison.decidedUntil;
  for (const { at, act } of agenda.filter((step) => step.at <= until)) {
    act(state, at);
    const output = comparison.take();
    emissions.push(...output.emissions);
    queries.push(...output.queries.map(({ id }) => id));
    podQueries.push(...output.podQueries.map((podUid) => `${at} ${podUid}`));
    // Decisions may depend on earlier ones.
    decided = comparison.decidedUntil;
  }
  for (const emission of emissions) check(emission);
  checkCounters(comparison.counters, comparison.pending);
  return { ...outcomeOf(emissions), ...endOf(comparison), queries, podQueries, decided };
}

function ticks(until: number): TimelineStep[] {
  return Array.from({ length: Math.floor(until / TICK) + 1 }, (_, i) => ({
    at: i * TICK,
    act: ({ comparison, session, readerStalled, offset }, at) => {
      if (!readerStalled) comparison.drained(session, seconds(at));
      comparison.tick(seconds(at), Math.round((WALL + at + offset) * 1e6));
    },
  }));
}

const endOf = (
  comparison: Comparison,
): Pick<TimelineOutcome, 'counters' | 'pending' | 'stream' | 'kubeletLag' | 'kubeletCounters'> => ({
  kubeletLag: comparison.takeKubeletLag(),
  kubeletCounters: comparison.kubeletCounters,
  counters: { ...comparison.counters },
  pending: comparison.pending,
  stream: comparison.streamState(),
});

function outcomeOf(
  emissions: readonly Emission[],
): Pick<TimelineOutcome, 'missed' | 'everMissed' | 'unobservable' | 'findings' | 'records'> {
  const records = emissions.map(({ record }) => record);
  const findings = records.filter((record) => record.type === 'finding');
  const resolved = new Set(
    records.flatMap((record) => (record.type === 'finding_resolved' ? [record.findingId] : [])),
  );
  const misses = findings.filter(({ kind }) => kind === 'missed');
  const name = ({ containerId, eventType }: RecordOf<'finding'>) => `${containerId} ${eventType}`;
  return {
    records,
    findings,
    everMissed: misses.map(name),
    missed: misses.filter(({ findingId }) => !resolved.has(findingId)).map(name),
    unobservable: findings
      .filter(({ kind }) => kind === 'unobservable')
      .map((finding) => `${name(finding)} ${finding.cause}`),
  };
}

function check({ record, object }: Emission): void {
  const parsed = parseRecord(record);
  if (!parsed.ok) throw new Error(`an invalid record: ${parsed.error} ${JSON.stringify(record)}`);
  if (object === null) return;
  const identity = parse(ContainerIdentitySchema, object);
  if (!identity.ok) throw new Error(`an invalid identity: ${identity.error}`);
}

/** Each transition that was due is in exactly one of the counters. */
function checkCounters(
  { expected, matched, missed, unobservable }: Readonly<ComparisonCounters>,
  pending: number,
): void {
  if (expected === matched + missed + unobservable + pending) return;
  throw new Error(
    `${expected} expected, but ${matched} matched, ${missed} missed, ${unobservable} unobservable, ${pending} pending`,
  );
}
