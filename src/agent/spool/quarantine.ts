/*
 * Quarantine: a spool that is not of this node, this cluster or this machine (a cloned disk, a golden image, a setting that was
 * changed) is moved aside as a whole. Its epochs are another's to deliver: sent from here too they would be two agents in
 * one life. Nothing of it is deleted.
 */
import { join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import type { Wall } from '../../protocol/units.ts';
import type { EpochMeta } from './epoch.ts';
import { type Files, readWhole, syncFolder } from './files.ts';
import { readAlive } from './recovery.ts';

export interface QuarantineOptions {
  readonly dir: string;
  readonly cluster: string;
  readonly node: string;
  /** Empty where it is not known. */
  readonly machine: string;
  readonly log: Logger;
  readonly files: Files;
}

/** What was moved aside: when its agent last gave a sign of life, null where it never did. */
export interface SetAside {
  readonly lastAlive: Wall | null;
}

/** What goes with the epochs: it speaks of them. */
const BESIDE = ['alive', 'past.json'];

/** Moves a spool of somebody else aside; null where it is ours. The lock must be held. */
export async function quarantine(options: QuarantineOptions): Promise<SetAside | null> {
  const { dir, files, log } = options;
  const foreign = await findForeign(options);
  if (foreign === null) return null;
  const lastAlive = (await readAlive(files, dir))?.at ?? null;
  const aside = join(dir, `foreign-${Date.now()}`);
  await files.makeFolder(aside);
  const { cluster, node, machine } = foreign;
  log.error(
    { aside, spool: { cluster, node, machine }, here: { machine: options.machine } },
    'the spool is of another node, cluster or machine and is moved aside',
  );
  // The epochs last: until then it is found again.
  for (const name of [...BESIDE, 'epochs']) {
    if ((await files.list(dir)).includes(name)) await files.rename(join(dir, name), join(aside, name));
  }
  await files.makeFolder(join(dir, 'epochs'));
  await syncFolder(files, aside);
  await syncFolder(files, dir);
  return { lastAlive };
}

async function findForeign({
  dir,
  files,
  cluster,
  node,
  machine,
}: QuarantineOptions): Promise<EpochMeta | null> {
  const root = join(dir, 'epochs');
  for (const name of await files.list(root)) {
    const meta = (await readWhole(files, join(root, name, 'meta.json'))) as EpochMeta | null;
    if (meta === null) continue;
    const elsewhere = machine !== '' && (meta.machine ?? '') !== '' && meta.machine !== machine;
    if (meta.cluster !== cluster || meta.node !== node || elsewhere) return meta;
  }
  return null;
}
