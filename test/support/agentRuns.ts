/*
 * Runs of an agent on a node as batches: when its stream was watched, and how each run ended. Random ones, and the way into the store. Times are minutes
 * since the start of an hour, almost a day ago.
 */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import type { Batch } from '../../src/protocol/batch.ts';
import type { EvidenceRecord, GapScope } from '../../src/protocol/record.ts';
import type { Store } from '../../src/store/store.ts';
import { agentStartedAt, CLUSTER } from './batches.ts';
import { commitTo } from './committed.ts';
import { query } from './database.ts';
import { relistMinute, streamSession } from './records.ts';

export const HOUR_MS = 3_600_000;
/** Less than a day: the dates of an epoch whose first batch is older are not believed. */
export const HOURS = 22;
export const BEGAN = Math.floor(Date.now() / HOUR_MS - HOURS) * HOUR_MS;
export const MINUTE_MS = 60_000;
export const MINUTE = 60_000_000;
export const SECOND = 1_000_000;
const PER_BATCH = 200;
export type Period = readonly [from: number, to: number];

/** A run of an agent. */
export interface Run {
  readonly from: number;
  readonly to: number;
  /** When its stream was watched: in order, apart, and not from the very start. */
  readonly watched: readonly Period[];
  /** stopped: it said so. killed: the next one says so. lost: nobody does. */
  readonly end: 'stopped' | 'killed' | 'lost';
}

export const gap = (scope: GapScope, from: number, to: number | null, cause: string): EvidenceRecord => ({
  ...{ type: 'gap', t: Math.max(0, to ?? from), gapId: randomUUID(), scope, cause, from, to },
});

/** In microseconds since it began. */
function recordsOf({ from, to, watched, end }: Run, before: Run | undefined): EvidenceRecord[] {
  const length = (to - from) * MINUTE;
  const pieces = watched.map(
    (piece) => piece.map((at) => Math.round((at - from) * MINUTE)) as [number, number],
  );
  const records: EvidenceRecord[] = [];
  if (before?.end === 'killed') records.push(gap('agent', (before.to - from) * MINUTE, SECOND / 10, 'died'));
  let unwatchedFrom = 0;
  for (const [n, [armed, closed]] of pieces.entries()) {
    records.push(gap('stream', unwatchedFrom, armed, n === 0 ? 'unproven' : 'broken'));
    const isOpen = closed === length && end !== 'stopped';
    const ended = isOpen ? {} : { closed, code: 'UNAVAILABLE', message: 'EOF' };
    records.push(
      streamSession({
        t: isOpen ? armed : closed,
        sessionNo: n + 1,
        opened: armed - 1,
        armed,
        events: 1,
        ...ended,
      }),
    );
    unwatchedFrom = closed;
  }
  if (unwatchedFrom < length) records.push(gap('stream', unwatchedFrom, null, 'broken'));
  for (let at = 0; at < length; at += MINUTE) {
    const covered = pieces.reduce(
      (sum, [armed, closed]) => sum + Math.max(0, Math.min(closed, at + MINUTE) - Math.max(armed, at)),
      0,
    );
    records.push(relistMinute({ t: at, relists: 12, hist: [12], covered, decided: at }));
  }
  if (end === 'stopped') records.push(gap('agent', length, null, 'stopped'));
  return records.sort((a, b) => a.t - b.t);
}

/** Other records of a run: in microseconds since it began. */
export interface More {
  readonly records: readonly EvidenceRecord[];
  readonly objects: Batch['objects'];
}

/** Commits the runs of a node, of which nothing is known after the last. */
export async function writeRuns(
  { store, databaseUrl }: { readonly store: Store; readonly databaseUrl: string },
  node: string,
  runs: readonly Run[],
  moreOf: (run: Run) => More = () => ({ records: [], objects: [] }),
): Promise<void> {
  const cluster = await store.ensureCluster(CLUSTER);
  for (const [n, run] of runs.entries()) {
    const started = BEGAN + run.from * MINUTE_MS;
    const agent = agentStartedAt(node, n + 1, started);
    const more = moreOf(run);
    const records = [...recordsOf(run, runs[n - 1]), ...more.records].sort((a, b) => a.t - b.t);
    for (let at = 0; at < records.length; at += PER_BATCH) {
      const some = records.slice(at, at + PER_BATCH);
      const isLast = at + PER_BATCH >= records.length;
      const sealed = isLast ? (run.to - run.from) * MINUTE : (some.at(-1)?.t ?? 0);
      const batch = agent.batch(at + 1, some, more.objects.length === 0 ? {} : { objects: more.objects });
      const wall0 = batch.wall0 - batch.mono0 + sealed;
      await commitTo(store, cluster, [{ ...batch, mono0: sealed, wall0 }]);
    }
    // As if each batch had been stored when it was sealed.
    const ended = new Date(BEGAN + run.to * MINUTE_MS);
    await query(databaseUrl, 'UPDATE store.epoch SET last_seen = $1, last_new_at = $1 WHERE epoch = $2', [
      ended,
      agent.epoch,
    ]);
    await query(
      databaseUrl,
      'UPDATE store.node SET first_seen = least(first_seen, $2), last_seen = $1 WHERE name = $3',
      [ended, new Date(started), node],
    );
  }
}

/** Runs after one another. Nothing has been heard of the last for at least ten minutes. */
export const anyRuns: fc.Arbitrary<Run[]> = fc
  .array(
    fc.record({
      wait: fc.integer({ min: 5, max: 400 }),
      pieces: fc.array(fc.tuple(fc.integer({ min: 2, max: 90 }), fc.integer({ min: 5, max: 500 })), {
        maxLength: 3,
      }),
      rest: fc.constantFrom(0, 0, 7, 60),
      end: fc.constantFrom('stopped' as const, 'killed' as const, 'lost' as const),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => {
    const runs: Run[] = [];
    let at = 0;
    for (const { wait, pieces, rest, end } of parts) {
      const from = at + wait;
      let to = from;
      const watched = pieces.map(([before, length]): Period => {
        const armed = to + before;
        to = armed + length;
        return [armed, to];
      });
      to += pieces.length === 0 ? rest + 5 : rest;
      at = to;
      if (to < HOURS * 60 - 10) runs.push({ from, to, watched, end });
    }
    return runs;
  })
  .filter((runs) => runs.length > 0);
