/*
 * The life of a container or sandbox, as far as something proves it.
 *
 *   (not there) ──► created ──► running ──► exited ──► (removed)
 *
 * A *proof* shows at a moment which stage it was in (a list) or had reached (an event, a missed one). The *edge* of a stage is when it was reached: after the
 * last proof of an earlier stage, and by the first one of this or a later stage; one moment where an event or the runtime says when. An id
 * never goes back, so what two proofs of one stage enclose needs no other. Past the last proof, a state lasts as long as lists went on: a list that
 * shows nothing new is not stored. Nothing is said beyond that.
 */
import type { ContainerEvent, Gap, ListChange, TimelineAnswer, TimelineFinding } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { msOf } from '../text.ts';
import { knownPeriod, periodOf } from './watched.ts';

/** `changing`: the next stage was reached somewhere within it; `turning`: its start or end. `unobserved`: nobody looked. */
export type LifeState = 'created' | 'running' | 'exited' | 'changing' | 'turning' | 'unobserved';

export interface LifePart extends Range {
  readonly state: LifeState;
}

export interface Life {
  /** In order, without holes between them. */
  readonly parts: readonly LifePart[];
  /** Nobody saw how it began. */
  readonly isOpenStart: boolean;
  /** It is not known to have been removed. */
  readonly isOpenEnd: boolean;
  readonly edges: Readonly<Partial<Record<Stage, Edge>>>;
}

/** 1 created, 2 running, 3 exited, 4 removed. */
type Stage = 1 | 2 | 3 | 4;

interface Edge {
  /** Null where nothing shows that it was not reached yet. */
  readonly from: number | null;
  readonly to: number;
}

/** The known facts of one container. */
export interface LifeEvidence {
  readonly events: readonly Pick<ContainerEvent, 'at' | 'createdAt' | 'type'>[];
  readonly changes: readonly Pick<ListChange, 'from' | 'to' | 'oldState' | 'newState'>[];
  /** Those that prove a change. */
  readonly findings: readonly Pick<TimelineFinding, 'eventType' | 'from' | 'occurredAt' | 'at'>[];
}

/** When lists were recorded: without these breaks, from the one moment to the other. */
export interface Listed extends Range {
  readonly breaks: readonly Range[];
  /** Until when lives are drawn. */
  readonly until: number;
}

export const STAGES: Readonly<Record<string, Stage>> = { CREATED: 1, STARTED: 2, STOPPED: 3, DELETED: 4 };
const STATES: Readonly<Record<string, 0 | Stage>> = { 'non-existent': 0, unknown: 1, running: 2, exited: 3 };
const STATE_OF: Readonly<Record<1 | 2 | 3, LifeState>> = { 1: 'created', 2: 'running', 3: 'exited' };

/** Undefined where nothing proves anything of it. */
export function lifeOf(evidence: LifeEvidence, listed: Listed): Life | undefined {
  const lives = turnsOf(evidence).flatMap((turn) => lifeOfTurn(turn, listed) ?? []);
  const [first, last] = [lives[0], lives.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const parts = lives.flatMap((life, n) => {
    const next = lives[n + 1]?.parts[0];
    return next === undefined ? life.parts : life.parts.flatMap((part) => before(part, next.from));
  });
  return { parts, isOpenStart: first.isOpenStart, isOpenEnd: last.isOpenEnd, edges: last.edges };
}

/** A list that takes back an end, or shows again what was gone, begins another turn. */
function turnsOf({ events, changes, findings }: LifeEvidence): LifeEvidence[] {
  const ordered = [...changes].sort((a, b) => msOf(a.to) - msOf(b.to));
  const begins = ordered.filter(
    ({ oldState, newState }, n) =>
      n > 0 && (oldState === 'non-existent' || (oldState === 'exited' && newState === 'running')),
  );
  const bounds = [
    Number.NEGATIVE_INFINITY,
    ...begins.map(({ from }) => msOf(from)),
    Number.POSITIVE_INFINITY,
  ];
  return bounds.slice(0, -1).map((from, n) => {
    const isOfTurn = (at: string) => msOf(at) >= from && msOf(at) < (bounds[n + 1] ?? 0);
    const own = ordered.filter((change) => isOfTurn(change.from));
    return {
      events: events.filter(({ at }) => isOfTurn(at)),
      // The end that is taken back was that of the turn before.
      changes: own.map((change, at) =>
        n > 0 && at === 0 ? { ...change, oldState: 'non-existent' } : change,
      ),
      findings: findings.filter((finding) => isOfTurn(finding.at)),
    };
  });
}

function lifeOfTurn(evidence: LifeEvidence, listed: Listed): Life | undefined {
  const proofs = proofsOf(evidence, listed);
  const edges = edgesOf(evidence, proofs);
  const reached = ([1, 2, 3, 4] as const).filter((stage) => edges[stage] !== undefined);
  const [first, last] = [reached[0], reached.at(-1)];
  const [start, end] = [first && edges[first], last && edges[last]];
  if (start === undefined || end === undefined || last === undefined) return undefined;
  const changing = (from: number, to: number): LifePart => {
    const isTurn = [edges[2], edges[3]].some((edge) => edge?.to === to && edge.from !== edge.to);
    return { state: isTurn ? 'turning' : 'changing', from, to };
  };
  // A state that nobody saw begin may at least be known not to have ended yet.
  const known = reached.flatMap((stage) => (edges[stage]?.to === start.to ? (edges[stage]?.from ?? []) : []));
  const parts: LifePart[] = known.length === 0 ? [] : [changing(start.from ?? Math.max(...known), start.to)];
  for (const [n, stage] of reached.entries()) {
    const [edge, next] = [edges[stage], edges[reached[n + 1] ?? stage]];
    if (stage === 4 || edge === undefined || next === undefined || next === edge) continue;
    const until = Math.max(edge.to, Math.min(next.from ?? edge.to, next.to));
    parts.push({ state: STATE_OF[stage], from: edge.to, to: until }, changing(until, next.to));
  }
  if (last !== 4) parts.push(...lasting(last, end.to, evidence, listed));
  return {
    parts: parts.filter(({ from, to }) => to > from),
    isOpenStart: start.from === null,
    isOpenEnd: last !== 4,
    edges,
  };
}

const before = ({ from, to, state }: LifePart, end: number): LifePart[] =>
  from >= end ? [] : [{ state, from, to: Math.min(to, end) }];

/** The last state, as long as lists went on, and then what nobody observed. */
function lasting(stage: 1 | 2 | 3, from: number, { changes }: LifeEvidence, listed: Listed): LifePart[] {
  const change = changes.at(-1);
  const isListed = change !== undefined && STATES[change.newState] === stage;
  const held = isListed ? Math.max(from, listedUntil(msOf(change.to), listed)) : from;
  return [
    { state: STATE_OF[stage], from, to: held },
    { state: 'unobserved', from: held, to: listed.until },
  ];
}

interface ListProof {
  readonly at: number;
  readonly stage: 0 | Stage;
}

/** The states in lists, in order. Before its first change, a container was as lists had shown it since they went on. */
function proofsOf({ changes }: LifeEvidence, listed: Listed): ListProof[] {
  const proofs: ListProof[] = [];
  const add = (at: number, state: string) => {
    const earlier = proofs.at(-1)?.stage ?? 0;
    const stage = state === 'non-existent' && proofs.length > 0 ? (earlier === 0 ? 0 : 4) : STATES[state];
    // After a run, the kubelet's word `unknown` is no stage.
    if (stage !== undefined && stage >= earlier) proofs.push({ at, stage });
  };
  const [first] = changes;
  if (first !== undefined) add(listedSince(msOf(first.from), listed), first.oldState);
  for (const { from, to, oldState, newState } of changes) {
    add(msOf(from), oldState);
    add(msOf(to), newState);
  }
  return proofs;
}

function edgesOf({ events, findings }: LifeEvidence, proofs: readonly ListProof[]): Life['edges'] {
  const marks = [...events.map(markOfEvent), ...findings.map(markOfFinding)].filter(({ stage }) => stage > 0);
  const hasRun = proofs.some(({ stage }) => stage === 2) || marks.some(({ isRun }) => isRun);
  const edges: Partial<Record<Stage, Edge>> = {};
  for (const stage of [1, 2, 3, 4] as const) {
    const listedBefore = proofs.findLast((proof) => proof.stage < stage)?.at ?? null;
    const listedBy = proofs.find((proof) => proof.stage >= stage)?.at ?? Number.POSITIVE_INFINITY;
    // Where an event contradicts lists, they are believed.
    const within = (at: number) => Math.min(listedBy, Math.max(listedBefore ?? at, at));
    const own = marks.filter((mark) => mark.stage === stage);
    const by = Math.min(listedBy, ...marks.filter((mark) => mark.stage >= stage).map(({ at }) => within(at)));
    if (!Number.isFinite(by) || (stage === 2 && !hasRun)) continue;
    const exact = own.filter(({ isExact }) => isExact).map(({ at }) => Math.min(by, within(at)));
    const lower = own.flatMap(({ from }) => from ?? []);
    const from = Math.max(listedBefore ?? Number.NEGATIVE_INFINITY, ...lower);
    if (exact.length > 0) edges[stage] = { from: Math.min(...exact), to: Math.min(...exact) };
    else edges[stage] = { from: Number.isFinite(from) ? Math.min(from, by) : null, to: by };
  }
  return edges;
}

/** An event or a finding: the stage was reached at, or by, that time. */
interface Mark {
  readonly stage: 0 | Stage;
  readonly at: number;
  readonly from: number | null;
  readonly isExact: boolean;
  /** It proves that the container ran. */
  readonly isRun: boolean;
}

/** The runtime built it when the change had happened, and it was received later. */
const markOfEvent = ({ at, createdAt, type }: LifeEvidence['events'][number]): Mark => ({
  stage: STAGES[type] ?? 0,
  at: createdAt === null ? msOf(at) : Math.min(msOf(at), msOf(createdAt)),
  ...{ from: null, isExact: true, isRun: type === 'STARTED' },
});

/** An end is due only of what ran. */
const markOfFinding = ({ eventType, from, occurredAt, at }: LifeEvidence['findings'][number]): Mark => ({
  stage: STAGES[eventType ?? ''] ?? 0,
  at: msOf(at),
  from: from === null ? null : msOf(from),
  isExact: occurredAt !== null,
  isRun: eventType === 'STARTED' || eventType === 'STOPPED',
});

/** Until when lists went on after that time, and since when before it. */
const listedUntil = (at: number, { to, breaks }: Listed): number =>
  Math.min(to, ...breaks.filter((each) => each.to > at).map(({ from }) => Math.max(at, from)));

const listedSince = (at: number, { from, breaks }: Listed): number =>
  Math.min(
    at,
    Math.max(from, ...breaks.filter((each) => each.from < at).map((each) => Math.min(at, each.to))),
  );

/** In gaps of these scopes, no change that a list showed is stored. */
const TAKES_LISTS: ReadonlySet<string> = new Set(['list', 'agent', 'seq', 'spool']);

const takesLists = ({ scope, cause, filledAt }: Gap): boolean =>
  filledAt === null && (TAKES_LISTS.has(scope) || cause === 'agent_stalled');

/** When the changes that lists show are complete in an answer. */
export function listedIn(answer: TimelineAnswer): Listed {
  const { now, from, to, changes, gaps } = answer;
  const known = knownPeriod(answer);
  const since = [from, changes.cut?.until, gaps.cut?.until].flatMap((at) =>
    at === undefined ? [] : [msOf(at)],
  );
  const until = Math.min(msOf(now), msOf(to));
  return {
    from: Math.max(...since, known?.from ?? until),
    to: Math.min(until, known?.to ?? until),
    until,
    breaks: gaps.rows.filter(takesLists).map(periodOf),
  };
}
