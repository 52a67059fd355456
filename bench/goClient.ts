/*
 * The measure: the kubelet's own CRI client, listing once a second (devtools/localServices/criclient).
 */
import { run } from '../devtools/localServices/process.ts';
import { where } from '../devtools/localServices/where.ts';

export interface GoUse {
  readonly relists: number;
  readonly seconds: number;
  readonly cpuMillis: number;
  /** At its end: heap with its garbage, stacks, and the pages of its program that are present. */
  readonly rssBytes: number;
  readonly sandboxes: number;
  readonly containers: number;
}

export async function runGoClient(socket: string, warm: number, relists: number): Promise<GoUse> {
  const args = ['-socket', socket, '-warm', `${warm}`, '-relists', `${relists}`];
  const timeoutMs = 2_000 * (warm + relists) + 60_000;
  // Its own output, one object of this shape.
  return JSON.parse(await run(where('criclient'), args, { timeoutMs })) as GoUse;
}
