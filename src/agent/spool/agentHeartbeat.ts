/*
 * The heartbeat of the agent: a file with the time, written every 10 seconds. When an agent starts, the gap "agent down" begins
 * at the last heartbeat of the one before.
 */
import { join } from 'node:path';
import { wallNow } from '../../platform/clock.ts';
import { type Wall, wall } from '../../protocol/units.ts';
import { readJson, type SpoolFiles, writeJson } from './files.ts';

export const HEARTBEAT_FILE = 'heartbeat.json';
export const HEARTBEAT_MS = 10_000;

export interface Heartbeat {
  readonly at: Wall;
  /** The incarnation that wrote it. */
  readonly incarnation: number;
}

export async function writeHeartbeat(files: SpoolFiles, dir: string, incarnation: number): Promise<void> {
  await writeJson(files, join(dir, HEARTBEAT_FILE), { wall: wallNow(), incarnation });
}

/** The last heartbeat; null if there is none. */
export async function readHeartbeat(files: SpoolFiles, dir: string): Promise<Heartbeat | null> {
  const heartbeat = Object(await readJson(files, join(dir, HEARTBEAT_FILE)));
  const at: unknown = Reflect.get(heartbeat, 'wall');
  const incarnation: unknown = Reflect.get(heartbeat, 'incarnation');
  if (!Number.isSafeInteger(at) || !Number.isSafeInteger(incarnation)) return null;
  return { at: wall(Number(at)), incarnation: Number(incarnation) };
}
