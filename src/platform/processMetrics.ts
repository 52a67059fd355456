/*
 * The metrics that both programs have: those of the process, under the names that every Node.js dashboard expects, and the build.
 */
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import { VERSION } from './version.ts';

export function registerProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'plegwatch_build_info',
    help: 'Always 1; the label has the version.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version: VERSION }, 1);
}
