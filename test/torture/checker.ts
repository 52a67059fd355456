/*
 * Compares the records that agents attempted with those in the store. Pure.
 *
 *   attempted      written to the audit file, before the record reached the spool
 *   stored         in the store once and unchanged
 *   lost           attempted, in the spool, and neither stored nor in a gap of that epoch
 *   unexpected     in the store but never attempted, or changed
 *   duplicated     in the store more than once
 *   declared       attempted, not stored, and in a gap of that epoch; a fault must explain the gap
 *   undeclared     periods that neither evidence nor a gap covers (plegwatch.undeclared_gaps)
 *   miscounted     hours that are not the sum of their minutes
 *   undetermined   attempted, and the agent died before it was in the spool: a bounded tail of an ended epoch
 *   different      what `plegwatch audit` says about the store
 *   accused, unwatched   see kubeletCheck.ts
 *   premature      acknowledged before it was committed
 *   undrained      batches left in the inboxes after everything else has settled
 */
import { type Attempt, factsOf } from './facts.ts';
import { checkKubelets, type KubeletEvidence, type KubeletResult } from './kubeletCheck.ts';
import type { Event } from './schedule.ts';

/** A row of the store that holds one record. */
export interface CheckedRow {
  readonly node: string;
  readonly epoch: string;
  readonly seq: number;
  readonly kind: string;
  readonly facts: string;
}

/** An epoch in the store: ranges of seqs, both ends inclusive. */
export interface StoredEpoch {
  readonly node: string;
  readonly epoch: string;
  readonly received: readonly (readonly [number, number])[];
  readonly lost: readonly (readonly [number, number])[];
}

/** An unfilled gap of seqs. */
export interface SeqGap {
  readonly node: string;
  readonly epoch: string;
  readonly cause: string;
  readonly from: number;
  readonly to: number;
}

/** A period without an agent, as the store reports it. Milliseconds since the Unix epoch. */
export interface AgentDowntime {
  readonly node: string;
  readonly cause: string;
  readonly from: number;
  readonly to: number;
}

/** A period that neither evidence nor a gap covers. Milliseconds since the Unix epoch. */
export interface UndeclaredGap {
  readonly node: string;
  readonly scope: string;
  readonly from: number;
  readonly to: number;
}

/** An hour of a context that is not the sum of its minutes. */
export interface MiscountedHour {
  readonly node: string;
  readonly hour: string;
}

/** An agent that was killed. */
export interface Death {
  readonly node: string;
  readonly at: number;
}

/** Rows into which many records are folded. */
export interface Folded {
  /** `epoch session` → the seq of the last record in it. */
  readonly sessions: ReadonlyMap<string, number>;
  /** Gap → whether it has ended. */
  readonly gaps: ReadonlyMap<string, boolean>;
  /** Findings that are resolved. */
  readonly resolutions: ReadonlySet<string>;
  /** Findings whose event was reported overdue. */
  readonly overdue: ReadonlySet<string>;
  /** Nodes that have a state. */
  readonly states: ReadonlySet<string>;
}

export interface CheckedStore {
  readonly rows: readonly CheckedRow[];
  readonly epochs: readonly StoredEpoch[];
  readonly gaps: readonly SeqGap[];
  readonly downtimes: readonly AgentDowntime[];
  readonly undeclared: readonly UndeclaredGap[];
  readonly miscounted: readonly MiscountedHour[];
  /** Nodes that there are not. */
  readonly strangers: readonly string[];
  readonly folded: Folded;
}

/** An acknowledgement ahead of what was committed at that time. */
export interface Premature {
  readonly epoch: string;
  readonly ackGeneration: number;
  readonly acknowledged: number;
  readonly committed: number;
}

export interface TortureEvidence extends KubeletEvidence {
  readonly attempts: readonly Attempt[];
  /** The highest seq in the spool of each epoch whose agent has died; the others are alive. */
  readonly ended: ReadonlyMap<string, number>;
  readonly deaths: readonly Death[];
  /** Later records of agents that are alive are not waited for. */
  readonly upTo: ReadonlyMap<string, number>;
  readonly store: CheckedStore;
  readonly faults: readonly Event[];
  readonly premature: readonly Premature[];
  /** The differences that `plegwatch audit` finds, once everything has settled. */
  readonly different: readonly string[];
  /** Batches in the inboxes, and jobs in the queues. */
  readonly undrained: number;
  /** Nodes that delete acknowledged records at once. */
  readonly forgetful: ReadonlySet<string>;
}

export interface CheckResult extends KubeletResult {
  readonly attempted: number;
  readonly stored: number;
  readonly lost: readonly string[];
  readonly unexpected: readonly string[];
  readonly duplicated: readonly string[];
  readonly declared: number;
  readonly unexplained: readonly string[];
  readonly undeclared: readonly string[];
  readonly miscounted: readonly string[];
  readonly undetermined: number;
  readonly different: readonly string[];
  readonly premature: readonly string[];
  readonly undrained: number;
  /** Empty if every guarantee held. */
  readonly problems: readonly string[];
}

/** Records that may be between the audit and the spool when an agent dies, on a machine so busy that a write takes seconds. */
const MAX_UNDETERMINED = 250;

export function checkRecords(evidence: TortureEvidence): CheckResult {
  const { attempts, store, ended, upTo } = evidence;
  const rows = Map.groupBy(store.rows, nameOf);
  const epochs = new Map(store.epochs.map((epoch) => [epoch.epoch, epoch]));
  const attempted = new Map(attempts.map((attempt) => [nameOf(attempt), attempt]));
  const lost: string[] = [];
  const undetermined = new Map<string, number>();
  let stored = 0;
  let declared = 0;
  let due = 0;
  for (const [name, attempt] of attempted) {
    const { epoch, seq } = attempt;
    const end = ended.get(epoch);
    const there = epochs.get(epoch);
    if (isStored(attempt, rows.get(name), there, store.folded)) stored += 1;
    else if (end === undefined && seq > (upTo.get(epoch) ?? 0)) continue;
    else if (there !== undefined && within(there.lost, seq) && inGap(store.gaps, epoch, seq)) declared += 1;
    else if (end !== undefined && seq > end) undetermined.set(epoch, (undetermined.get(epoch) ?? 0) + 1);
    else lost.push(`${attempt.node} ${name} ${attempt.record.type}`);
    due += 1;
  }
  const result = {
    attempted: due,
    stored,
    lost,
    unexpected: [
      ...store.rows.flatMap((row) => differenceFrom(row, attempted.get(nameOf(row)))),
      ...store.strangers.map((node) => `${node}: there is no such node`),
    ],
    duplicated: [...rows].flatMap(([name, all]) => (all.length > 1 ? [`${name}: ${all.length} rows`] : [])),
    declared,
    unexplained: [
      ...store.gaps.filter((gap) => !isExplained(gap, evidence)).map(describeGap),
      ...store.downtimes.filter((downtime) => !hadDeath(downtime, evidence)).map(describeDowntime),
    ],
    undeclared: store.undeclared.map(describeUndeclared),
    miscounted: store.miscounted.map(({ node, hour }) => `${node} ${hour}`),
    undetermined: [...undetermined.values()].reduce((a, b) => a + b, 0),
    different: evidence.different,
    premature: evidence.premature.map(describePremature),
    undrained: evidence.undrained,
    ...checkKubelets(attempts, evidence),
  };
  return { ...result, problems: problemsOf(result, undetermined, evidence) };
}

const nameOf = ({ epoch, seq }: { readonly epoch: string; readonly seq: number }): string =>
  `${epoch}:${seq}`;

function isStored(
  { node, epoch, seq, record }: Attempt,
  rows: readonly CheckedRow[] | undefined,
  there: StoredEpoch | undefined,
  folded: Folded,
): boolean {
  if (there === undefined || !within(there.received, seq)) return false;
  switch (record.type) {
    case 'stream_session':
      return (folded.sessions.get(`${epoch} ${record.sessionNo}`) ?? 0) >= seq;
    case 'gap':
      return folded.gaps.has(record.gapId) && (record.to === null || folded.gaps.get(record.gapId) === true);
    case 'node_state':
      return folded.states.has(node);
    case 'finding_resolved':
      return folded.resolutions.has(record.findingId);
    case 'event_overdue':
      return folded.overdue.has(record.findingId);
    default:
      return rows !== undefined;
  }
}

const within = (ranges: readonly (readonly [number, number])[], seq: number): boolean =>
  ranges.some(([from, to]) => seq >= from && seq <= to);

const inGap = (gaps: readonly SeqGap[], epoch: string, seq: number): boolean =>
  gaps.some((gap) => gap.epoch === epoch && seq >= gap.from && seq <= gap.to);

function differenceFrom(row: CheckedRow, attempt: Attempt | undefined): string[] {
  const where = `${row.node} ${nameOf(row)} ${row.kind}`;
  if (attempt === undefined) return [`${where}: nobody attempted it`];
  if (attempt.node !== row.node) return [`${where}: ${attempt.node} attempted it`];
  const facts = factsOf(attempt.record);
  if (attempt.record.type === row.kind && facts === row.facts) return [];
  return [`${where}: it was ${attempt.record.type} ${facts}, and is ${row.facts}`];
}

/** Whether an injected fault can have caused this gap. */
function isExplained({ node, cause }: SeqGap, { faults, forgetful }: TortureEvidence): boolean {
  switch (cause) {
    case 'spool_full':
    case 'spool_unwritable':
      return hadFault('full disk', node, faults);
    case 'spool_corrupt':
      // The last record of an agent that was killed while its disk was full may be half written.
      return (['flipped bit', 'misread block', 'full disk'] as const).some((kind) =>
        hadFault(kind, node, faults),
      );
    case 'spool_unreadable':
      return hadFault('bad sector', node, faults);
    case 'store_lost':
      // On a full disk an agent deletes acknowledged records, as a forgetful one always does.
      return (
        (forgetful.has(node) || hadFault('full disk', node, faults)) &&
        faults.some(({ fault }) => fault.kind === 'restore' && fault.of === 'postgres')
      );
    default:
      return false;
  }
}

const hadFault = (
  kind: 'full disk' | 'bad sector' | 'flipped bit' | 'misread block' | 'clock' | 'slow disk',
  node: string | undefined,
  faults: readonly Event[],
): boolean => faults.some(({ fault }) => fault.kind === kind && `node-${fault.node}` === node);

/** How far wall clocks may differ between two places. */
const SLACK_MS = 1_000;

/**
 * If the agent's clock was moved, the bounds of a downtime do not match its deaths: any death of that agent explains it. Spools survive,
 * so the next agent declares each death, unless its declaration was lost with other records.
 */
function hadDeath(
  { node, cause, from, to }: AgentDowntime,
  { deaths, faults, store }: TortureEvidence,
): boolean {
  if (cause === 'silent' && !store.gaps.some((gap) => gap.node === node)) return false;
  const moved = hadFault('clock', node, faults) || hadFault('slow disk', node, faults);
  return deaths.some(
    ({ node: died, at }) => died === node && (moved || (at >= from - SLACK_MS && at <= to + SLACK_MS)),
  );
}

const describeDowntime = ({ node, cause, from, to }: AgentDowntime): string =>
  `${node} had no agent (${cause}) from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;

const describeUndeclared = ({ node, scope, from, to }: UndeclaredGap): string =>
  `${node} ${scope} from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;

/** The lists of a result that must be empty. */
export const PROBLEM_CLASSES = [
  'lost',
  'unexpected',
  'duplicated',
  'unexplained',
  'undeclared',
  'miscounted',
  'different',
  'premature',
  'accused',
  'unwatched',
] as const;

const describeGap = ({ node, epoch, cause, from, to }: SeqGap): string =>
  `${node} ${epoch}:${from}-${to} ${cause}`;

const describePremature = ({ epoch, ackGeneration, acknowledged, committed }: Premature): string =>
  `${epoch} ack generation ${ackGeneration}: ${acknowledged} acknowledged, ${committed} committed`;

function problemsOf(
  result: Omit<CheckResult, 'problems'>,
  undetermined: ReadonlyMap<string, number>,
  { faults, attempts }: TortureEvidence,
): string[] {
  const nodeOf = new Map(attempts.map(({ epoch, node }) => [epoch, node]));
  const tails = [...undetermined].filter(
    ([epoch, n]) => n > MAX_UNDETERMINED && !hadFault('full disk', nodeOf.get(epoch), faults),
  );
  return [
    ...(result.stored === 0 ? ['nothing was stored at all'] : []),
    ...PROBLEM_CLASSES.flatMap((each) => (result[each].length > 0 ? [`${result[each].length} ${each}`] : [])),
    ...(result.undrained > 0 ? [`${result.undrained} batches left in the inboxes`] : []),
    ...tails.map(([epoch, n]) => `${n} records of ${epoch} never reached the spool`),
  ];
}
