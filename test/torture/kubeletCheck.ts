/*
 * Holds what agents recorded of the kubelet's own status against the ground truth of the simulated kubelets. Pure.
 *
 *   accused     a kubelet_late that is not true: the container had not started or stopped by then, or the status showed it before the agent
 *               asked; the pod was not known, was terminating or had ended; or no watch was there from before the change until then
 *   unwatched   records claim that the status was watched while no watch was there
 *
 * A claim begins with a state of the node that says so, or with the end of a gap; it ends where the next gap begins. An agent that is killed
 * may not have noticed that the watch had ended, so the last moments of an epoch are no claim.
 */
import type { TruthEntry } from '../../devtools/simulator/groundTruth.ts';
import type { RecordOf } from '../../src/protocol/record.ts';
import { type Mono, shift } from '../../src/protocol/units.ts';
import type { Attempt } from './facts.ts';

/** The truth about a node, in order. */
export interface KubeletTruth {
  readonly node: string;
  readonly entries: readonly TruthEntry[];
}

export interface KubeletEvidence {
  readonly kubelets: readonly KubeletTruth[];
  /** When epochs began. Nothing can be said of an epoch in memory, which is not here. */
  readonly starts: ReadonlyMap<string, Mono>;
}

export interface KubeletResult {
  readonly accused: readonly string[];
  readonly unwatched: readonly string[];
  /** How much there was to check: findings, claims, and starts and stops that were counted as kubelet lag. */
  readonly late: number;
  readonly claims: number;
  readonly lags: number;
}

/** Within this a running agent notices that its watch has ended. */
const NOTICED_WITHIN = 5_000_000;

export function checkKubelets(
  attempts: readonly Attempt[],
  { kubelets, starts }: KubeletEvidence,
): KubeletResult {
  const truths = new Map(kubelets.map(({ node, entries }) => [node, entries]));
  const late = attempts.flatMap(({ node, epoch, record }) => {
    const start = starts.get(epoch);
    const isLate = record.type === 'finding' && record.kind === 'kubelet_late';
    return isLate && start !== undefined ? [{ node, record, start }] : [];
  });
  const claims = claimsOf(attempts, starts);
  return {
    accused: late.flatMap(({ node, record, start }) => {
      const why = whyFalse(record, start, truths.get(node) ?? []);
      return why === null ? [] : [`${node} ${record.containerId} ${record.eventType}: ${why}`];
    }),
    unwatched: claims.flatMap((claim) => breaksIn(claim, truths.get(claim.node) ?? [])),
    late: late.length,
    claims: claims.length,
    lags: attempts.reduce((total, { record }) => total + lagsIn(record), 0),
  };
}

function lagsIn(record: Attempt['record']): number {
  if (record.type !== 'relist_minute' || record.kubeletLag === undefined) return 0;
  const { starts, stops } = record.kubeletLag;
  return [...starts, ...stops].reduce((total, n) => total + n, 0);
}

/** Why a finding is not true; null where it is. */
function whyFalse(
  { containerId, eventType, window, proof }: RecordOf<'finding'>,
  start: Mono,
  entries: readonly TruthEntry[],
): string | null {
  const [asked, lateAfter] = [Number(proof['asked']), Number(proof['lateAfter'])];
  if (window === null || window.from === null || window.to === null || !(asked - window.to >= lateAfter))
    return 'its proof contradicts itself';
  const at = (offset: number): number => start + offset;
  const happened = entries.find(
    (entry) =>
      entry.what === 'transition' &&
      entry.id === containerId &&
      entry.transition === eventType?.toLowerCase(),
  );
  if (happened?.what !== 'transition' || happened.mono > at(window.to)) return 'it had not happened by then';
  const podUid = happened.pod.uid;
  const statuses = entries.filter(
    (entry) => entry.what === 'status' && entry.pod.uid === podUid && entry.mono <= at(asked),
  );
  const first = statuses[0];
  if (first === undefined || first.mono > at(window.to)) return 'the kubelet did not know the pod then';
  if (statuses.some((entry) => entry.what === 'status' && (entry.ended || entry.isTerminating)))
    return 'the pod was terminating';
  if (statuses.some((entry) => shows(entry, containerId, eventType))) return 'its status had shown it';
  const since = Math.min(happened.mono, at(window.from));
  return isWatched(entries, since, at(asked)) ? null : 'no watch was there from then until the question';
}

function shows(entry: TruthEntry, id: string | null, eventType: string | null): boolean {
  if (entry.what !== 'status') return false;
  return entry.containers.some(
    (each) =>
      each.lastId === id ||
      (each.id === id &&
        (each.state === 'terminated' || (each.state === 'running' && eventType === 'STARTED'))),
  );
}

interface TrueWatch {
  readonly opened: number;
  /** Infinity while it is open. */
  readonly closed: number;
  /** The client left: nothing of the kubelet has ended. */
  readonly isLeft: boolean;
}

function watchesOf(entries: readonly TruthEntry[]): TrueWatch[] {
  const changes = entries.filter((entry) => entry.what === 'watch');
  return changes
    .filter(({ change }) => change === 'opened')
    .map(({ watch, mono: opened }) => {
      const end = changes.find((each) => each.watch === watch && each.change === 'closed');
      return {
        opened,
        closed: end?.mono ?? Number.POSITIVE_INFINITY,
        isLeft: end?.cause === 'cancelled',
      };
    });
}

const isWatched = (entries: readonly TruthEntry[], from: number, until: number): boolean =>
  watchesOf(entries).some(({ opened, closed }) => opened <= from && closed > until);

/** A period of which the records claim that the status was watched. */
interface Claim {
  readonly node: string;
  readonly epoch: string;
  readonly from: number;
  readonly to: number;
}

function claimsOf(attempts: readonly Attempt[], starts: ReadonlyMap<string, Mono>): Claim[] {
  return [...Map.groupBy(attempts, ({ epoch }) => epoch)].flatMap(([epoch, records]) => {
    const start = starts.get(epoch);
    const node = records[0]?.node;
    if (start === undefined || node === undefined) return [];
    const inOrder = records.toSorted((a, b) => a.seq - b.seq).map(({ record }) => record);
    return watchedIn(inOrder).map(([from, to]) => ({
      ...{ node, epoch },
      from: shift(start, from),
      to: shift(start, to),
    }));
  });
}

/** The periods of one epoch, in its offsets. */
function watchedIn(records: readonly Attempt['record'][]): [from: number, to: number][] {
  const certainUntil = Math.max(...records.map(({ t }) => t)) - NOTICED_WITHIN;
  const periods: [from: number, to: number][] = [];
  let from: number | null = null;
  for (const record of records) {
    if (isWatching(record)) from ??= record.t;
    if (record.type !== 'gap' || record.scope !== 'kubelet_status') continue;
    if (record.to === null && from !== null) periods.push([from, record.from]);
    from = record.to;
  }
  if (from !== null) periods.push([from, certainUntil]);
  return periods
    .map(([began, ended]): [number, number] => [began, Math.min(ended, certainUntil)])
    .filter(([began, ended]) => ended > began);
}

const isWatching = (record: Attempt['record']): boolean =>
  record.type === 'node_state' && record.podsApi?.state === 'Watching';

/** From the end of each watch until the next one there was none. */
function breaksIn({ node, epoch, from, to }: Claim, entries: readonly TruthEntry[]): string[] {
  const watches = watchesOf(entries);
  return watches
    .filter(({ isLeft, closed }) => !isLeft && closed < to)
    .filter(({ closed }) => {
      const next = watches.find(({ opened }) => opened >= closed)?.opened ?? Number.POSITIVE_INFINITY;
      return next > from;
    })
    .map(
      ({ closed }) =>
        `${node} ${epoch}: a watch ended ${Math.round((closed - from) / 1000)} ms into the claim`,
    );
}
