/*
 * Periodic restarts of a simulated runtime's process. It announces nothing that happens while it is down.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ProfileName } from './profiles.ts';
import type { RuntimeCore } from './runtimeCore.ts';

export interface RestartPlan {
  /** How long it runs between two restarts, in milliseconds. */
  readonly everyMs: number;
  readonly downMs: number;
  /** Default: killed. */
  readonly how?: 'killed' | 'stopped';
  /** The probability that a running container exits while the runtime is down. Default 0. */
  readonly exits?: number;
  /** The profile from the first restart on. */
  readonly as?: ProfileName | undefined;
}

interface RestartableRuntime {
  readonly core: Pick<RuntimeCore, 'exitSome'>;
  goDown(how: 'killed' | 'stopped'): Promise<void>;
  comeUp(as?: ProfileName): Promise<void>;
}

/** Restarts until the signal is aborted. */
export async function runRestarts(
  runtime: RestartableRuntime,
  plan: RestartPlan,
  signal: AbortSignal,
): Promise<void> {
  const { everyMs, downMs, how = 'killed', exits = 0, as } = plan;
  try {
    while (!signal.aborted) {
      await pause(everyMs, undefined, { signal });
      await runtime.goDown(how);
      await pause(downMs / 2, undefined, { signal });
      runtime.core.exitSome(exits);
      await pause(downMs / 2, undefined, { signal });
      await runtime.comeUp(as);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
