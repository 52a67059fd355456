/*
 * `plegwatch-dev simulate fleet`: many simulated nodes in one process, which ship to a real Redis. Start several with different
 * `--first-node` for more than one core. Every two seconds and at the end it prints its totals, one JSON line each. SIGUSR2 stops the churn;
 * the pods that exist then remain.
 */
import { createLogger } from '../../src/platform/log.ts';
import { aborted } from '../../src/platform/stopSignal.ts';
import { SimulatedFleet } from './fleet.ts';
import type { SimulateFleetConfig } from './settings.ts';

const PRINT_MS = 2_000;

/** Runs until the signal is aborted. */
export async function simulateFleet(config: SimulateFleetConfig, signal: AbortSignal): Promise<void> {
  const fleet = new SimulatedFleet(config, createLogger(config.logLevel, 'fleet'));
  const print = () => process.stdout.write(`${JSON.stringify(fleet.totals)}\n`);
  const printer = setInterval(print, PRINT_MS);
  const stopChurn = () => void fleet.stopChurn();
  process.once('SIGUSR2', stopChurn);
  try {
    await fleet.start(signal);
    await aborted(signal);
  } finally {
    process.off('SIGUSR2', stopChurn);
    clearInterval(printer);
    await fleet.stop();
    print();
  }
}
