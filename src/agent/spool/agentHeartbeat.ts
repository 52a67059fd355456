/*
 * The heartbeat of the agent: a file that says until when the node was observed, written every 10 seconds and when the agent stops,
 * after every record about the time before. So the next agent knows since when nobody observed the node, however this one ended:
 *
 *   stopped    it said so itself, in a record of its own: nothing is left to say
 *   died       it was killed, crashed or ran out of memory
 *   rebooted   the node was restarted, and with it the monotonic clock
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Mono, mono, type Wall, wall } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import { readJson, type SpoolFiles, type SpoolFolder, writeJson } from './files.ts';

export const HEARTBEAT_FILE = 'heartbeat.json';
export const HEARTBEAT_MS = 10_000;

const integer = v.pipe(v.number(), v.safeInteger());

const HeartbeatSchema = v.object({
  /** The node was observed until then, on the clock of the boot. */
  mono: v.pipe(integer, v.transform<number, Mono>(mono)),
  /** The same moment, on the wall clock of the epoch's start. */
  wall: v.pipe(integer, v.transform<number, Wall>(wall)),
  bootId: v.string(),
  incarnation: integer,
  /** Its records up to here were synced; those in memory end with the process, and the next agent declares them lost. */
  lastSeq: v.fallback(integer, 0),
  hasStopped: v.fallback(v.boolean(), false),
});
export type Heartbeat = Readonly<v.InferOutput<typeof HeartbeatSchema>>;

/** The last moment that the previous agent observed. */
export interface LastObserved {
  /** Null on another boot, whose clock it was. */
  readonly mono: Mono | null;
  readonly wall: Wall;
  readonly cause: 'died' | 'rebooted';
}

export function writeHeartbeat(files: SpoolFiles, dir: string, heartbeat: Heartbeat): Promise<void> {
  return writeJson(files, join(dir, HEARTBEAT_FILE), heartbeat);
}

export const readHeartbeat = (folder: SpoolFolder): Promise<Heartbeat | null> =>
  readJson(folder, join(folder.dir, HEARTBEAT_FILE), HeartbeatSchema);

/**
 * The last moment that the agent before this one observed: its last heartbeat, or an event that it wrote after that. Null if there was
 * no agent, or if it has recorded its own end.
 */
export function lastObserved(
  heartbeat: Heartbeat | null,
  earlier: readonly Epoch[],
  bootId: string,
): LastObserved | null {
  const previous = earlier.findLast(({ lastSeq }) => lastSeq > 0);
  if (heartbeat !== null && heartbeat.incarnation > (previous?.meta.incarnation ?? 0))
    return endedAt(heartbeat, bootId);
  if (previous === undefined) return null;
  const { meta, lastEvent, hasStopped } = previous;
  // Without a heartbeat it ended in its first seconds, and the older heartbeat is of another.
  const own = heartbeat?.incarnation === meta.incarnation ? heartbeat : null;
  const observed = Math.max(lastEvent, own === null ? 0 : own.mono - meta.startedMono);
  return endedAt(
    {
      mono: mono(meta.startedMono + observed),
      wall: wall(meta.startedWall + observed),
      bootId: meta.bootId,
      // It may have been killed between its last record and its last heartbeat, or a power cut took the heartbeat.
      hasStopped: hasStopped || own?.hasStopped === true,
    },
    bootId,
  );
}

function endedAt(
  last: Pick<Heartbeat, 'mono' | 'wall' | 'bootId' | 'hasStopped'>,
  bootId: string,
): LastObserved | null {
  if (last.hasStopped) return null;
  const isSameBoot = last.bootId === bootId;
  return { mono: isSameBoot ? last.mono : null, wall: last.wall, cause: isSameBoot ? 'died' : 'rebooted' };
}

export const readBootId = async (): Promise<string> =>
  (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
