/*
 * `plegwatch simulate runtime`: the settings, and a runtime that lives until it is told to stop.
 */

import { EVENT_TYPES, type EventType } from '../evidence/record.ts';
import type { ConfigOf } from '../settings.ts';
import { BadValue, duration, integer, oneOf, optional, required, string, withDefault } from '../settings.ts';
import { delay, drop, duplicate, type Fault, reorder } from './faults.ts';
import { PROFILE_NAMES } from './profiles.ts';
import { type SimulatedRuntimeOptions, startSimulatedRuntime } from './runtime.ts';

const HOUR_MS = 3_600_000;

export const simulateRuntimeSettings = {
  socket: required('path', 'the unix socket to listen on', string),
  seed: withDefault('number', '1', 'the same seed gives the same lives and faults', integer(0, 2 ** 31 - 1)),
  profile: withDefault('name', 'containerd-2.1', 'the runtime to behave like', oneOf(...PROFILE_NAMES)),
  pods: withDefault('number', '10', 'pods that live at the same time', integer(0, 5000)),
  podLife: withDefault('duration', '20s', 'mean length of a pod’s life', duration(500, 24 * HOUR_MS)),
  restarts: withDefault('number', '0.4', 'restarts of a container in one life, on average', decimal(0, 10)),
  drop: withDefault('probability', '0', 'lose each event with this probability', decimal(0, 1)),
  dropTypes: optional('types', 'lose only these, such as STARTED,STOPPED', eventTypes),
  delay: optional('probability:duration', 'hold events back, such as 0.01:3s', delayed),
  duplicate: withDefault('probability', '0', 'send an event twice with this probability', decimal(0, 1)),
  reorder: withDefault(
    'probability',
    '0',
    'let an event be overtaken by the next of its id with this probability',
    decimal(0, 1),
  ),
  breakStream: optional('after', 'end each event stream this long after it began', duration(1, 24 * HOUR_MS)),
  truth: optional('file', 'write what really happened, one JSON line each', string),
};

export type SimulateRuntimeConfig = ConfigOf<typeof simulateRuntimeSettings>;

/** Runs until the signal is aborted. Throws SETTING_INVALID when the socket cannot be used. */
export async function simulateRuntime(config: SimulateRuntimeConfig, signal: AbortSignal): Promise<void> {
  const runtime = await startSimulatedRuntime(runtimeOptions(config));
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  signal.addEventListener('abort', () => resolve(), { once: true });
  try {
    // The lives end only when they fail; without pods there are none, and the socket is served all the same.
    await Promise.race([aborted, runtime.finished().then(() => aborted)]);
  } finally {
    await runtime.stop();
  }
}

/** What a command line means. */
export function runtimeOptions(config: SimulateRuntimeConfig): SimulatedRuntimeOptions {
  const { socket, seed, profile, pods, podLife, restarts, breakStream, truth } = config;
  return {
    socket,
    seed,
    profile,
    ...(pods > 0 ? { churn: { pods, meanMs: podLife / 1000, restarts } } : {}),
    faults: faultsOf(config),
    breakStreamAfterMs: breakStream === undefined ? undefined : breakStream / 1000,
    truthFile: truth,
    keepTruth: false,
  };
}

function faultsOf(config: SimulateRuntimeConfig): Fault[] {
  const { seed } = config;
  const faults: Fault[] = [];
  if (config.drop > 0) faults.push(drop({ seed, probability: config.drop, types: config.dropTypes }));
  if (config.delay !== undefined) {
    faults.push(delay({ seed, probability: config.delay.probability }, config.delay.ms));
  }
  if (config.duplicate > 0) faults.push(duplicate({ seed, probability: config.duplicate }));
  if (config.reorder > 0) faults.push(reorder({ seed, probability: config.reorder }));
  return faults;
}

function decimal(min: number, max: number): (raw: string) => number {
  return (raw) => {
    const value = Number(raw);
    if (raw.trim() === '' || !(value >= min && value <= max)) {
      throw new BadValue(`must be a number from ${min} to ${max}`);
    }
    return value;
  };
}

function eventTypes(raw: string): readonly EventType[] {
  const types = raw.split(',').map((name) => EVENT_TYPES.find((type) => type === name.trim()));
  return types.map((type) => {
    if (type === undefined) throw new BadValue(`must be a list of ${EVENT_TYPES.join(', ')}`);
    return type;
  });
}

function delayed(raw: string): { readonly probability: number; readonly ms: number } {
  const [probability = '', ms = ''] = raw.split(':');
  return { probability: decimal(0, 1)(probability), ms: duration(1, HOUR_MS)(ms) / 1000 };
}
