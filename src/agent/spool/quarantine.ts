/*
 * Quarantine: the spool of another node, cluster or machine (a cloned disk, a golden image, a changed setting) is moved aside
 * as a whole. Its epochs are delivered by their own agent; sent from here as well, two agents would share one incarnation.
 * Nothing of it is deleted.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Wall } from '../../protocol/units.ts';
import { HEARTBEAT_FILE, readHeartbeat } from './agentHeartbeat.ts';
import { type EpochMeta, EpochMetaSchema } from './epoch.ts';
import { readJson, type SpoolFolder, syncFolder } from './files.ts';
import { RETIRED_FILE } from './retiredEpochs.ts';

export interface QuarantineOptions extends SpoolFolder {
  readonly cluster: string;
  readonly node: string;
  /** Empty if it is not known. */
  readonly machine: string;
}

export interface QuarantinedSpool {
  readonly lastAlive: Wall | null;
}

/** Moves the spool aside if it is another's; otherwise returns null. The lock must be held. */
export async function quarantine(options: QuarantineOptions): Promise<QuarantinedSpool | null> {
  const { dir, files, log } = options;
  const foreign = await findForeign(options);
  if (foreign === null) return null;
  const lastAlive = (await readHeartbeat(options))?.wall ?? null;
  const aside = join(dir, `foreign-${Date.now()}`);
  await files.makeFolder(aside);
  const { cluster, node, machine } = foreign;
  const found = { aside, spool: { cluster, node, machine }, here: { machine: options.machine } };
  if (node === options.node && machine !== '' && machine === options.machine)
    log.warn(
      { ...found, cure: 'Nothing needs the folder if that is meant: remove it.' },
      'this node has another --cluster than before: its earlier spool is quarantined',
    );
  else log.error(found, 'spool of another node, cluster or machine is quarantined');
  // The epochs last: if this is interrupted, they are found again.
  for (const name of [HEARTBEAT_FILE, RETIRED_FILE, 'epochs']) {
    if ((await files.list(dir)).includes(name)) await files.rename(join(dir, name), join(aside, name));
  }
  await files.makeFolder(join(dir, 'epochs'));
  await syncFolder(files, aside);
  await syncFolder(files, dir);
  return { lastAlive };
}

async function findForeign(options: QuarantineOptions): Promise<EpochMeta | null> {
  const { dir, files, cluster, node, machine } = options;
  const root = join(dir, 'epochs');
  for (const name of await files.list(root)) {
    const meta = await readJson(options, join(root, name, 'meta.json'), EpochMetaSchema);
    if (meta === null) continue;
    const isOtherMachine = machine !== '' && meta.machine !== '' && meta.machine !== machine;
    if (meta.cluster !== cluster || meta.node !== node || isOtherMachine) return meta;
  }
  return null;
}

/**
 * The identity of this machine, also from inside a container: the product UUID of its firmware or hypervisor, in lower case. A clone of a
 * virtual machine has another one. /etc/machine-id would not do: it is cloned with the disk, and a container has its own. Empty if it is
 * not readable: then machines are not distinguished.
 */
export async function machineId(): Promise<string> {
  try {
    return (await readFile('/sys/class/dmi/id/product_uuid', 'utf8')).trim().toLowerCase();
  } catch {
    return '';
  }
}
