/*
 * Opens a spool: takes the lock, quarantines another's spool, recovers the earlier epochs and creates a new one.
 */
import { join } from 'node:path';
import { messageOf, type PlegwatchError } from '../../platform/errors.ts';
import { lastObserved, readBootId, readHeartbeat } from './agentHeartbeat.ts';
import { LOCAL_FILES, type SpoolFiles, spoolUnusable, syncFolder } from './files.ts';
import { lockSpool, whileHeld } from './lock.ts';
import { writeReserve } from './losses.ts';
import { MemoryFallback } from './memoryFallback.ts';
import { createEpoch } from './newEpoch.ts';
import { machineId, quarantine } from './quarantine.ts';
import { recoverEpochs } from './recovery.ts';
import { readRetiredEpochs } from './retiredEpochs.ts';
import { type OpenedSpool, Spool, type SpoolSettings } from './spool.ts';

export interface SpoolOptions extends SpoolSettings {
  readonly cluster: string;
  readonly node: string;
  /** The reaction to a disk that cannot be used. Default: refuse. */
  readonly fallback?: 'refuse' | 'memory';
  /** Default: those of this machine. */
  readonly files?: SpoolFiles;
  /** Default: the id of this machine. */
  readonly machine?: string;
  /** Default: that of this machine. */
  readonly bootId?: string;
  /** Called once when another agent holds the lock. */
  readonly onWait?: (reason: string) => void;
}

const LOCK_CURE =
  'If that is no earlier pod which ends: uninstall the other release, or give this one a --spool-dir of its own.';

type CompleteOptions = Required<Omit<SpoolOptions, 'auditFile' | 'fallback' | 'maxEpochAge' | 'onWait'>> & {
  readonly fallback: MemoryFallback | null;
  readonly onWait?: SpoolOptions['onWait'];
};

/**
 * Opens the spool of this node, and waits while another agent has it. Throws SPOOL_UNUSABLE if the folder cannot be used and
 * running from memory is not allowed, or the signal's reason when it is aborted.
 */
export async function openSpool(given: SpoolOptions, signal: AbortSignal): Promise<Spool> {
  const disk = given.files ?? LOCAL_FILES;
  const fallback = given.fallback === 'memory' ? new MemoryFallback(disk) : null;
  const machine = given.machine ?? (await machineId());
  const bootId = given.bootId ?? (await readBootId());
  const options = { ...given, machine, bootId, fallback, files: fallback ?? disk };
  return new Spool(given, await open(options, signal));
}

async function open(options: CompleteOptions, signal: AbortSignal): Promise<OpenedSpool> {
  try {
    return await openOnDisk(options, signal);
  } catch (error) {
    const { fallback, log } = options;
    if (fallback === null || signal.aborted) throw error;
    log.error({ error: messageOf(error) }, 'spool unusable, running from memory');
    fallback.engage(messageOf(error));
    return openInMemory(options);
  }
}

/** No other agent can use it: it needs no lock. */
async function openInMemory(options: CompleteOptions): Promise<OpenedSpool> {
  const { files, fallback } = options;
  const current = await createEpoch(options, [], 0);
  return { files, fallback, lock: null, earlier: [], current, lastObserved: null, quarantined: null };
}

async function openOnDisk(options: CompleteOptions, signal: AbortSignal): Promise<OpenedSpool> {
  const { dir, fallback, log, bootId } = options;
  try {
    await options.files.makeFolder(join(dir, 'epochs'));
    await syncFolder(options.files, dir);
  } catch (error) {
    throw unusable(error);
  }
  const onWait = () => {
    log.warn({ dir, cure: LOCK_CURE }, 'waiting for the spool lock, another agent holds it');
    options.onWait?.(`another agent holds the lock of the spool ${dir}. ${LOCK_CURE}`);
  };
  const lock = await lockSpool(dir, onWait, signal);
  try {
    const files = whileHeld(options.files, lock);
    const locked = { ...options, files };
    const quarantined = await quarantine(locked);
    const heartbeat = await readHeartbeat(locked);
    const recovered = await recoverEpochs(locked, heartbeat);
    const earlier = [...(await readRetiredEpochs(locked, recovered)), ...recovered].sort(
      (a, b) => a.meta.incarnation - b.meta.incarnation,
    );
    const current = await createEpoch(locked, earlier, heartbeat?.incarnation ?? 0);
    await writeReserve(files, dir);
    const last = lastObserved(heartbeat, earlier, bootId);
    return { files, fallback, lock, earlier, current, lastObserved: last, quarantined };
  } catch (error) {
    lock.release();
    throw unusable(error);
  }
}

const unusable = (error: unknown): PlegwatchError =>
  spoolUnusable(`The spool folder cannot be used: ${messageOf(error)}.`, { cause: error });
