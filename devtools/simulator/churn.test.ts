import { expect, test } from 'vitest';
import { waitFor } from '../../test/support/waitFor.ts';
import { runChurn } from './churn.ts';
import { machineClock } from './clock.ts';
import { RuntimeCore } from './runtimeCore.ts';

test('a removal that was announced is finished when churn stops, so that nothing is listed for ever after its DELETED', async () => {
  const timers = new Set<NodeJS.Timeout>();
  const core = new RuntimeCore({
    seed: 1,
    clock: machineClock(),
    later: (ms, run) => void timers.add(setTimeout(run, ms)),
    onCrash: () => undefined,
    keepTruth: true,
  });
  core.comeUp();
  const stopping = new AbortController();
  // The removal would last for ten minutes.
  const options = { seed: 1, pods: 1, meanMs: 200, restarts: 0, leadMs: 600_000 };
  const churning = runChurn(core.pods, options, stopping.signal);
  const announced = () =>
    core.truth.entries.some((each) => each.what === 'event' && each.isSandbox && each.type === 'DELETED');
  await waitFor('the removal of the sandbox is announced', announced);
  stopping.abort();
  await churning;
  for (const timer of timers) clearTimeout(timer);
  expect(core.pods.sandboxes.size).toBe(0);
});
