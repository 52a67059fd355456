/*
 * The reference: the kubelet's own CRI client, which lists once a second (devtools/localServices/criclient).
 */
import { run } from '../devtools/localServices/process.ts';
import { where } from '../devtools/localServices/where.ts';

export interface GoUse {
  readonly relists: number;
  readonly seconds: number;
  readonly cpuMillis: number;
  /** At its end: heap with garbage, stacks, and resident pages of its program. */
  readonly rssBytes: number;
  readonly sandboxes: number;
  readonly containers: number;
}

export async function runGoClient(socket: string, warm: number, relists: number): Promise<GoUse> {
  const args = ['-socket', socket, '-warm', `${warm}`, '-relists', `${relists}`];
  const timeoutMs = 2_000 * (warm + relists) + 60_000;
  // criclient prints one object of this shape.
  return JSON.parse(await run(where('criclient'), args, { timeoutMs })) as GoUse;
}
