/*
 * The identity of this machine, also from inside a container: the product UUID of its firmware or hypervisor. A clone of a
 * virtual machine has another one. /etc/machine-id would not do: it is cloned with the disk, and a container has its own.
 */
import { readFile } from 'node:fs/promises';

const PRODUCT_UUID = '/sys/class/dmi/id/product_uuid';

/** The machine's UUID in lower case. Empty if it is not readable: then machines are not told apart. */
export async function machineId(file = PRODUCT_UUID): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim().toLowerCase();
  } catch {
    return '';
  }
}
