/*
 * Load of busy nodes: events of pods that come and go by the simulator's scripts, and the changes that relists find. A node sends 250 ms after a
 * record what it has by then, as an agent does.
 */
import type { PodAction } from '../../devtools/simulator/podActions.ts';
import { podScriptOf } from '../../devtools/simulator/podScript.ts';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import {
  type ContainerIdentity,
  EVENT_TYPES,
  type EventType,
  type EvidenceRecord,
  type PlegState,
} from '../../src/protocol/record.ts';
import type { PlanClock, PlannedBatch } from './sealedSenders.ts';

interface ChurnPlan {
  readonly nodes: readonly string[];
  /** Events of all nodes together. */
  readonly eventsASecond: number;
  readonly seconds: number;
  /** Another one has other pods. */
  readonly seed?: number;
}

export const PODS = 30;
/** Events of a pod: a sandbox and, on average, 1.4 containers with four events each. */
const EVENTS_A_POD = 9.6;
const LINGER_MS = 250;
const RELIST_MS = 5_000;
const STATE_AFTER: Readonly<Record<EventType, PlegState>> = {
  CREATED: 'unknown',
  STARTED: 'running',
  STOPPED: 'exited',
  DELETED: 'non-existent',
};

interface Transition {
  readonly at: number;
  readonly identity: ContainerIdentity;
  readonly type: EventType;
}

interface PlannedRecord {
  readonly at: number;
  readonly identity: ContainerIdentity;
  readonly record: (clock: PlanClock) => EvidenceRecord;
}

/** How long a pod lives, so that the nodes have the events a second that are asked for. */
export const lifetimeMs = (nodes: number, eventsASecond: number): number =>
  Math.round((1_000 * nodes * PODS * EVENTS_A_POD) / eventsASecond);

export function churnPlan({ nodes, eventsASecond, seconds, seed = 0 }: ChurnPlan): PlannedBatch[] {
  const meanMs = lifetimeMs(nodes.length, eventsASecond);
  return nodes
    .flatMap((node, n) => batchesOf(node, recordsOf(seed + n, { meanMs, untilMs: 1_000 * seconds })))
    .sort((a, b) => a.at - b.at);
}

function batchesOf(node: string, records: readonly PlannedRecord[]): PlannedBatch[] {
  const batches: PlannedBatch[] = [];
  for (let i = 0; i < records.length; ) {
    const at = (records[i]?.at ?? 0) + LINGER_MS;
    const from = i;
    while (i < records.length && (records[i]?.at ?? 0) <= at) i += 1;
    const some = records.slice(from, i);
    const objects = [...new Set(some.map(({ identity }) => identity))];
    batches.push({ node, at, objects, records: (clock) => some.map(({ record }) => record(clock)) });
  }
  return batches;
}

function recordsOf(
  seed: number,
  { meanMs, untilMs }: { readonly meanMs: number; readonly untilMs: number },
): PlannedRecord[] {
  const random = randomFor(seed, 'plan');
  const slots = Array.from({ length: PODS }, (_, slot) =>
    transitionsOf(random, { seed, slot, meanMs, untilMs }),
  );
  const transitions = slots.flat().sort((a, b) => a.at - b.at);
  const changes = changesOf(transitions, random.between(0, RELIST_MS));
  return [...transitions.filter(({ at }) => at >= 0).map(eventOf), ...changes]
    .filter(({ at }) => at < untilMs)
    .sort((a, b) => a.at - b.at);
}

/** Transitions of the pods of a slot, one after the other. They began long before, so that as many start as end. */
function transitionsOf(
  random: Random,
  {
    untilMs,
    ...script
  }: { readonly seed: number; readonly slot: number; readonly meanMs: number; readonly untilMs: number },
): Transition[] {
  const transitions: Transition[] = [];
  let begin = -random.between(1, 2) * script.meanMs;
  for (let number = 0; begin < untilMs; number += 1) {
    const identities = new Map<string, ContainerIdentity>();
    let end = begin;
    for (const { at, act } of podScriptOf({ ...script, number, restarts: 0 })) {
      end = begin + at;
      for (const [identity, type] of eventsOf(act, identities)) transitions.push({ at: end, identity, type });
    }
    begin = end + random.between(5, 100);
  }
  return transitions;
}

/** The events of an action of an ordinary pod. */
function eventsOf(
  act: PodAction,
  identities: Map<string, ContainerIdentity>,
): [ContainerIdentity, EventType][] {
  const of = (id: string, ...types: EventType[]): [ContainerIdentity, EventType][] => {
    const identity = identities.get(id);
    return identity === undefined ? [] : types.map((type) => [identity, type]);
  };
  switch (act.do) {
    case 'runPod': {
      const { id, uid, namespace, name } = act.pod;
      const names = { podUid: uid ?? '', namespace: namespace ?? '', pod: name, attempt: 0 };
      identities.set(id, { id, sandbox: id, isSandbox: true, ...names, container: '' });
      return of(id, 'CREATED', 'STARTED');
    }
    case 'createContainer': {
      const { id, name } = act.container;
      const sandbox = identities.get(act.sandbox);
      if (sandbox !== undefined) identities.set(id, { ...sandbox, id, isSandbox: false, container: name });
      return of(id, 'CREATED');
    }
    case 'startContainer':
      return of(act.id, 'STARTED');
    case 'exitContainer':
      return of(act.id, 'STOPPED');
    case 'removeContainer':
      return of(act.id, 'DELETED');
    case 'stopPod':
      return of(act.sandbox, 'STOPPED');
    case 'beginRemoval':
      return of(act.sandbox, 'DELETED');
    default:
      return [];
  }
}

const eventOf = ({ at, identity, type }: Transition): PlannedRecord => ({
  at,
  identity,
  record: ({ t, wall }) => ({
    type: 'container_event',
    ...{ t: t(at), containerId: identity.id, eventType: EVENT_TYPES.indexOf(type) },
    createdNs: `${wall(at)}000`,
    ...{ isSandbox: identity.isSandbox, replayed: false, hasSandboxStatus: true },
  }),
});

/** The differences from relist to relist. */
function changesOf(transitions: readonly Transition[], phase: number): PlannedRecord[] {
  const changes: PlannedRecord[] = [];
  const listed = new Map<ContainerIdentity, PlegState>();
  let now = new Map<ContainerIdentity, PlegState>();
  const relist = (at: number) => {
    for (const [identity, newState] of now) {
      const oldState = listed.get(identity) ?? 'non-existent';
      listed.set(identity, newState);
      if (oldState === newState || at < 0) continue;
      changes.push({
        at,
        identity,
        record: ({ t }) => ({
          type: 'relist_change',
          ...{ t: t(at), containerId: identity.id, isSandbox: identity.isSandbox, oldState, newState },
          window: { from: t(at - RELIST_MS), to: t(at) },
        }),
      });
    }
    now = new Map();
  };
  let next: number | null = null;
  for (const { at, identity, type } of transitions) {
    next ??= phase + RELIST_MS * Math.floor((at - phase) / RELIST_MS) + RELIST_MS;
    while (next <= at) {
      relist(next);
      next += RELIST_MS;
    }
    now.set(identity, STATE_AFTER[type]);
  }
  if (next !== null) relist(next);
  return changes;
}
