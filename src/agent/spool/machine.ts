/*
 * Which machine this is, seen from inside a container too: the UUID that its firmware, or its hypervisor, gave it. A clone of
 * a virtual machine has another one; the machine-id of a file system is copied with it, and a container has its image's.
 */
import { readFile } from 'node:fs/promises';

const PRODUCT_UUID = '/sys/class/dmi/id/product_uuid';

/** Empty where the machine does not say, or not to us: then nothing follows from it. */
export async function machineId(file = PRODUCT_UUID): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim().toLowerCase();
  } catch {
    return '';
  }
}
