/*
 * A part of the controller's half of `make bench`: it starts what it measures, stops all of it whatever happens, and returns its figures.
 * bench/controller/main.ts runs the parts one after the other.
 */
import type { TableRow } from '../table.ts';

/** The name of the file in dist/bench, and its content. */
interface PlotFile {
  readonly file: `${string}.svg`;
  readonly svg: string;
}

interface PartResult {
  readonly rows: readonly TableRow[];
  readonly plots: readonly PlotFile[];
}

export interface BenchPart {
  /** One word, by which PLEGWATCH_BENCH_PARTS names it. */
  readonly name: string;
  readonly title: string;
  /** Throws where it cannot measure. A budget that is missed is a row with `met: false`. */
  run(): Promise<PartResult>;
}

/** With PLEGWATCH_BENCH_SHORT=1 each part takes as few windows and seconds as show that it works. */
export const SHORT = process.env['PLEGWATCH_BENCH_SHORT'] === '1';

const COUNTS = SHORT ? '1 2' : process.env['PLEGWATCH_BENCH_LONG'] === '1' ? '1 2 4 8 16' : '1 4';
/** How many clusters share a Postgres, one measurement after the other; PLEGWATCH_BENCH_CLUSTERS, separated by spaces. */
export const CLUSTER_COUNTS = (process.env['PLEGWATCH_BENCH_CLUSTERS'] ?? COUNTS).split(' ').map(Number);

export const log = (what: string): void => void process.stderr.write(`bench: ${what}…\n`);
