/*
 * A small history with records of each type, for tests of what reads the store.
 */
import { randomUUID } from 'node:crypto';
import type { EvidenceRecord, KubeletMinute, ListHang } from '../../src/protocol/record.ts';
import { event, hexId, missedFinding, nodeState, relistMinute, streamSession } from './records.ts';

const US_PER_MINUTE = 60_000_000;

const DETECTED = { t: 50_000_000, window: { from: 20_000_000, to: 21_000_000 } };

/** A record of each type: a kubelet that fell back after its stream broke, and a missed event. */
export function evidence(): EvidenceRecord[] {
  const id = hexId(1);
  const short = (proof: Readonly<Record<string, unknown>>) => {
    const window = { from: 117_000_000, to: 118_000_000 };
    return missedFinding({ t: 118_000_000, kind: 'short_life', eventType: null, window, proof });
  };
  const starved = missedFinding({
    ...{ t: 50_000_000, kind: 'silent_stream', eventType: null, cause: 'starved', containerId: null },
    ...{ window: { from: 15_000_000, to: 49_000_000 }, proof: { v: 1, changes: 6, relists: 2 } },
  });
  const kubelet: KubeletMinute = {
    scraped: { from: 65_000_000, to: 115_000_000 },
    relists: 60,
    hist: [59, 0, 0, 0, 1],
    intervals: 60,
    intervalSum: 60_300_000,
    lastSeenAge: 1_400_000,
    discarded: null,
    streamErrors: 5,
    listP99: 4_200,
    resident: 120_000_000,
    calls: {
      ...{ from: 60_000_000, to: 110_000_000, relistSum: 90_000, longestList: 2_000, cpu: 1_500_000 },
      sandboxLists: { calls: 60, errors: 0, sum: 30_000 },
      containerLists: { calls: 60, errors: 0, sum: 50_000 },
      sandboxStatuses: { calls: 2, errors: 0, sum: 3_000 },
      containerStatuses: { calls: 4, errors: 1, sum: 7_000 },
    },
  };
  const pressure = {
    ...{ span: 60_000_000, cpuSome: 30_000_000, ioSome: 15_000_000, ioFull: 7_500_000 },
    ...{ memorySome: 600_000, memoryFull: 0 },
  };
  const slowest = { containerId: id, isSandbox: false, at: 70_000_000, took: 2_500_400, timedOut: false };
  const hang: ListHang = {
    ...{ from: 65_000_000, to: 72_500_000, waited: 7_500_000 },
    ...{ listed: 30, asked: 20, quick: 19, unanswered: 0 },
    call: 'ListContainers',
    verdict: 'container',
  };
  const kubeletLag = { starts: [0, 2], stops: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1] };
  const minute = (no: number) =>
    relistMinute({
      t: no * US_PER_MINUTE,
      ...{ relists: 12, max: 7_000, hist: [0, 3, 9], sandboxes: 10, containers: 20 },
      ...{ exitedSandboxes: 1, exitedContainers: 11, sandboxListBytes: 12_000, containerListBytes: 48_000 },
      ...{
        expected: 5,
        matched: 4,
        unobservable: 1,
        covered: 59_000_000,
        lists: [0, 2_000, 2_000, 5_000, 0, 30],
      },
      // The kubelet is asked from the second minute on, and its relists are slow.
      ...(no === 0 ? {} : { kubelet, statuses: { asked: 20, slow: 1, slowest, hang }, pressure, kubeletLag }),
    });
  return [
    event(1, { eventType: 1 }),
    {
      type: 'relist_change',
      t: 21_000_000,
      containerId: id,
      isSandbox: false,
      window: { from: 20_000_000, to: 21_000_000 },
      oldState: 'running',
      newState: 'non-existent',
    },
    missedFinding(DETECTED),
    missedFinding({ ...DETECTED, kind: 'unannounced', eventType: 'CREATED', cause: 'never_sent' }),
    starved,
    missedFinding({ ...DETECTED, t: 50_500_000, proof: { v: 1, hint: 'stream_starved' } }),
    short({ v: 1, lifeMinMs: 201, lifeMaxMs: 603 }),
    short({ v: 1, lifeMinMs: 'not long', lifeMaxMs: 1e300 }),
    streamSession({
      ...{ t: 40_000_000, armed: 2, closed: 40_000_000, code: 'UNAVAILABLE', message: 'EOF' },
      ...{ events: 4, replayed: 1 },
    }),
    {
      type: 'gap',
      t: 40_000_000,
      gapId: randomUUID(),
      scope: 'stream',
      cause: 'broken',
      from: 40_000_000,
      to: null,
    },
    {
      type: 'mode_change',
      t: 5_000_000,
      notBefore: 1,
      model: 'EventedCache',
      from: 'Unknown',
      to: 'Evented',
      reason: 'Connected',
      proof: { v: 1, before: null, after: { errors: 0 } },
    },
    {
      type: 'mode_change',
      t: 45_000_000,
      notBefore: 35_000_000,
      model: 'EventedCache',
      from: 'Evented',
      to: 'Fallback',
      reason: 'StreamBroke',
      proof: { v: 1, before: { errors: 0 }, after: { errors: 5 } },
    },
    minute(0),
    minute(1),
  ];
}

export const STATE = nodeState({
  t: 5_000_000,
  mode: 'Fallback',
  modeReason: 'StreamBroke',
  kubeletStreamErrors: 5,
});

/** As the recorder of conditions writes it. */
export const UNHEALTHY = `
  INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message, pleg_seen_ago_ms, threshold_ms)
  SELECT now(), (now() AT TIME ZONE 'UTC')::date, node_id, cluster_id, 'False', 'KubeletNotReady',
         'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s', 185000, 180000
  FROM store.node WHERE name = 'node-a'`;

/** As the recorder of Ready conditions writes it. */
export const NOT_READY = `
  INSERT INTO store.ready_change (node_id, cluster_id, at, status, reason, causes)
  SELECT node_id, cluster_id, now(), 'False', 'KubeletNotReady', '{network}' FROM store.node WHERE name = 'node-a'`;

/** As the recorder of labels writes it. */
export const NODE_INFO = `
  INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
  SELECT node_id, cluster_id, now(), '{"pool": "general"}', 'Debian GNU/Linux 13 (trixie)', '6.12.43' FROM store.node WHERE name = 'node-a'`;

/** As the enroller writes it. */
export const NODE_KEY = `
  INSERT INTO store.node_key (node_id, cluster_id, public_key, enrolled_at, expires_at, pod_uid)
  SELECT node_id, cluster_id, '\\x01', now(), now() + interval '1 hour', 'uid-1' FROM store.node WHERE name = 'node-a'`;
