/*
 * The evidence of a node whose runtime lost stops, on a kubelet with a PodsAPI: what really happened to each container is known.
 */
import { randomUUID } from 'node:crypto';
import type { Batch } from '../../src/protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord, PlegState, RecordOf } from '../../src/protocol/record.ts';
import { agentIncarnation } from './batches.ts';
import { event, hexId, missedFinding, relistMinute, streamSession } from './records.ts';

const SECOND = 1_000_000;
export const GHOST_NODE = 'node-ghost';
/** How long ago the agent started. */
export const AGO_MS = 600_000;

/** A run of one container, in seconds since the agent started. */
interface Run {
  readonly n: number;
  readonly pod: string;
  readonly attempt?: number;
  readonly started: number;
  readonly stopped: number | null;
  readonly deleted?: number;
  /** Its STOPPED did not come: what the proof says of the kubelet, and how long the API server took. */
  readonly missed?: {
    readonly kubelet: unknown;
    readonly lag: readonly [least: number | null, most: number | null];
  };
}

const kubelet = (atLeast: number, atMost: number) => ({
  is: 'shown',
  atLeast: atLeast * SECOND,
  atMost: atMost * SECOND,
});

/** The one that looked alive, one of which nobody looked, one whose loss did no harm, and three in which nothing is wrong. */
export const RUNS: readonly Run[] = [
  {
    n: 1,
    pod: 'cart-7',
    started: 32,
    stopped: 121,
    deleted: 170,
    missed: { kubelet: kubelet(28, 33), lag: [33_000, 34_500] },
  },
  { n: 2, pod: 'cart-7', attempt: 1, started: 156, stopped: null },
  {
    n: 3,
    pod: 'pay-1',
    started: 41,
    stopped: 213,
    missed: { kubelet: { is: 'not_observed', why: 'watch_gap' }, lag: [61_000, null] },
  },
  {
    n: 4,
    pod: 'mail-0',
    started: 52,
    stopped: 301,
    deleted: 330,
    missed: { kubelet: kubelet(0, 0.9), lag: [400, 1_600] },
  },
  ...[5, 6, 7].map((n) => ({ n, pod: `web-${n}`, started: 50 + 11 * n, stopped: n === 7 ? 400 : null })),
];

const at = (seconds: number): number => Math.round(seconds * SECOND);
/** The lists around a moment: there is one every five seconds. */
const window = (seconds: number) => ({
  from: at(Math.floor(seconds / 5) * 5),
  to: at(Math.floor(seconds / 5) * 5 + 5),
});

export const missedId = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

interface Told {
  readonly containerId: string;
  readonly isSandbox: boolean;
}

/** When the agent started, in milliseconds since 1970. */
type Began = number;

function happened(began: Began, told: Told, seconds: number, eventType: number): EvidenceRecord {
  const createdNs = String(BigInt(Math.round((began + seconds * 1000) * 1000)) * 1000n);
  return event(1, { ...told, eventType, t: at(seconds) + 2_000, createdNs });
}

function changed(
  told: Told,
  seconds: number,
  oldState: PlegState,
  newState: PlegState,
): RecordOf<'relist_change'> {
  return {
    type: 'relist_change',
    ...told,
    t: window(seconds).to,
    window: window(seconds),
    oldState,
    newState,
  };
}

function recordsOf(began: Began, { n, started, stopped, deleted, missed }: Run): EvidenceRecord[] {
  const told = { containerId: hexId(n), isSandbox: false };
  const records = [
    happened(began, told, started - 0.4, 0),
    happened(began, told, started, 1),
    changed(told, started, 'non-existent', 'running'),
  ];
  if (stopped !== null) records.push(changed(told, stopped, 'running', 'exited'));
  if (stopped !== null && missed === undefined) records.push(happened(began, told, stopped, 2));
  if (deleted !== undefined)
    records.push(happened(began, told, deleted, 3), changed(told, deleted, 'exited', 'non-existent'));
  if (stopped !== null && missed !== undefined)
    records.push(
      missedFinding({
        ...{ t: window(stopped).to + 30 * SECOND, findingId: missedId(n), containerId: told.containerId },
        ...{ window: window(stopped), occurred: at(stopped), proof: { v: 1, kubelet: missed.kubelet } },
      }),
    );
  return records;
}

/** A sandbox is there from before its first container on. */
function sandboxRecords(began: Began, pod: string): EvidenceRecord[] {
  const told = { containerId: sandboxOf(pod), isSandbox: true };
  const first = Math.min(...RUNS.filter((run) => run.pod === pod).map(({ started }) => started)) - 1.5;
  const events = [0, 1].map((eventType) => happened(began, told, first + eventType / 10, eventType));
  return [...events, changed(told, first, 'non-existent', 'running')];
}

const PODS = [...new Set(RUNS.map(({ pod }) => pod))];
const sandboxOf = (pod: string): string => hexId(0xa00 + PODS.indexOf(pod));

/** All of it, of an agent that started at `began`, {@link AGO_MS} ago. From 450 s on its lists failed. */
export function ghostBatch(began: Began): Batch {
  const minutes = Array.from({ length: 9 }, (_, no) =>
    relistMinute({ t: at(60 * no), relists: 12, max: 7_000, hist: [0, 3, 9], covered: 60 * SECOND }),
  );
  const gap = { gapId: randomUUID(), scope: 'list', cause: 'failed', from: at(450), to: null } as const;
  const records: EvidenceRecord[] = [
    streamSession({ t: at(1), opened: at(1), armed: at(2), events: 40 }),
    ...PODS.flatMap((pod) => sandboxRecords(began, pod)),
    ...RUNS.flatMap((run) => recordsOf(began, run)),
    ...minutes,
    { type: 'gap', t: at(590), ...gap },
  ];
  records.sort((a, b) => a.t - b.t);
  const identity = (id: string, pod: string, more: Partial<ContainerIdentity>): ContainerIdentity => ({
    ...{ id, pod, sandbox: sandboxOf(pod), isSandbox: false, podUid: `uid-${pod}`, namespace: 'shop' },
    ...{ container: 'app', attempt: 0 },
    ...more,
  });
  const objects = [
    ...RUNS.map(({ n, pod, attempt = 0 }) => identity(hexId(n), pod, { attempt })),
    ...PODS.map((pod) => identity(sandboxOf(pod), pod, { isSandbox: true, container: '' })),
  ];
  return agentIncarnation(GHOST_NODE, 1, AGO_MS).batch(1, records, { objects });
}

/** As the controller writes what it read of the API server: $1 is the id of a finding, then the bounds in milliseconds. */
export const STATUS_LAG = `
  INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, value_ms, note)
  SELECT f.finding_id, f.node_id, f.cluster_id, f.day, u.what, f.detected_at, u.ms, u.note
  FROM store.finding f, (VALUES ('lag_min', $2::float8, NULL), ('lag_max', $3::float8, NULL), ('lag_reason', NULL, CASE WHEN $3::float8 IS NULL THEN 'timed_out' END))
    AS u (what, ms, note)
  WHERE f.finding_id = $1 AND (u.ms IS NOT NULL OR u.note IS NOT NULL)`;
