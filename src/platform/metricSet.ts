/*
 * The metrics of a program. Both programs have those of the process, under the names that every Node.js dashboard expects, and the build.
 * Counters start at 0 for every combination of their labels, because `increase()` misses the first increment of a series that did not
 * exist before.
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { COMMIT, VERSION } from './version.ts';

export abstract class MetricSet {
  readonly registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    const labels = { version: VERSION, commit: COMMIT, node_version: process.versions.node };
    this.gauge('build_info', 'Always 1; the labels say what runs.', Object.keys(labels)).set(labels, 1);
  }

  /** `labels`: every value that a label can have. */
  protected counter<const L extends string = never>(
    name: string,
    help: string,
    labels: Readonly<Record<L, readonly string[]>> = Object.create(null),
  ): Counter<L> {
    const counter = new Counter<string>({
      name: `plegwatch_${name}`,
      help,
      labelNames: Object.keys(labels),
      registers: [this.registry],
    });
    for (const combination of combinations(Object.entries(labels))) counter.inc(combination, 0);
    return counter;
  }

  protected gauge<const L extends string = never>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
  ): Gauge<L> {
    return new Gauge({
      name: `plegwatch_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
    });
  }
}

function combinations(
  labels: readonly [name: string, values: readonly string[]][],
): Record<string, string>[] {
  return labels.reduce<Record<string, string>[]>(
    (found, [name, values]) => found.flatMap((each) => values.map((value) => ({ ...each, [name]: value }))),
    [{}],
  );
}
