/*
 * `plegwatch-dev simulate runtime`: its settings, and a runtime that runs until it is stopped.
 */
import type { ConfigOf } from '../../src/platform/settings.ts';
import {
  bytes,
  duration,
  integer,
  oneOf,
  optional,
  required,
  string,
  toggle,
  withDefault,
} from '../../src/platform/settings.ts';
import { backlogHoles, delay, drop, duplicate, type EventFault, reorder } from './eventFaults.ts';
import {
  decimal,
  eventTypes,
  milliseconds,
  nameOf,
  odds,
  pair,
  pairOr,
  probability,
  statusCode,
  wallStep,
} from './flags.ts';
import {
  failingLists,
  hangingLists,
  type ListFault,
  malformedLists,
  oversizedLists,
  paddedLists,
  slowLists,
} from './listFaults.ts';
import {
  MALFORMATIONS,
  malformed,
  nilStatus,
  partialStatuses,
  WRONG_CREATED_AT,
  wrongCreatedAt,
} from './messageFaults.ts';
import { PROFILE_NAMES } from './profiles.ts';
import type { RestartPlan } from './restarts.ts';
import { type SimulatedRuntimeOptions, startSimulatedRuntime } from './runtime.ts';

const HOUR_MS = 3_600_000;
const malformation = nameOf(MALFORMATIONS);
const chance = (describe: string) => withDefault('probability', '0', describe, probability);

export const SIMULATE_RUNTIME_SETTINGS = {
  socket: required('path', 'the unix socket to listen on', string),
  seed: withDefault('number', '1', 'the same seed gives the same pods and faults', integer(0, 2 ** 31 - 1)),
  profile: withDefault('name', 'containerd-2.1', 'the runtime to simulate', oneOf(...PROFILE_NAMES)),
  truth: optional('file', 'the file for the ground truth, one JSON line per entry', string),

  pods: withDefault('number', '10', 'pods that exist at the same time', integer(0, 5000)),
  podLifetime: withDefault('duration', '20s', 'mean lifetime of a pod', duration(500, 24 * HOUR_MS)),
  restarts: withDefault('number', '0.4', 'container restarts in one pod, on average', decimal(0, 10)),
  removalLag: withDefault(
    'duration',
    '200ms',
    'longest time that a sandbox stays listed during its removal',
    milliseconds,
  ),
  odd: optional('kind:probability,…', 'pods with an oddity, such as failed-start:0.1,regression:0.05', odds),
  oddFor: withDefault('duration', '3s', 'how long an oddity lasts', milliseconds),

  drop: chance('drop each event with this probability'),
  dropTypes: optional('types', 'drop only these, such as STARTED,STOPPED', eventTypes),
  delay: optional('probability:duration', 'delay events, such as 0.01:3s', pair(probability, milliseconds)),
  duplicate: chance('send each event twice with this probability'),
  reorder: chance('let the next event of the same id overtake an event with this probability'),
  replay: withDefault(
    'number',
    '0',
    'send so many of the latest events again to each new subscriber',
    integer(0, 100_000),
  ),
  backlogHoles: chance('drop each event without a subscriber with this probability'),
  wrongCreatedAt: optional(
    'kind:probability',
    `send a wrong created_at: ${WRONG_CREATED_AT.join(', ')}`,
    pair(nameOf(WRONG_CREATED_AT), probability),
  ),
  nilStatus: chance('send events without the sandbox status, with this probability'),
  partialStatuses: chance('send events with incomplete container statuses, with this probability'),
  malformed: optional(
    'probability[:kind]',
    `send malformed events: ${MALFORMATIONS.join(', ')}`,
    pairOr(probability, malformation, null),
  ),
  breakStream: optional(
    'after[:status]',
    'end each event stream after this time, such as 30s or 30s:OK',
    pairOr(milliseconds, statusCode, undefined),
  ),

  listSlow: optional('probability:duration', 'delay lists, such as 0.1:2s', pair(probability, milliseconds)),
  listHang: chance('never answer a list, with this probability'),
  listFail: optional(
    'probability:status',
    'fail lists, such as 0.1:UNAVAILABLE',
    pair(probability, statusCode),
  ),
  listPad: withDefault('size', '0', 'bytes added to every list item', bytes(0, 2 ** 30)),
  listOversize: chance('exceed the message size limit with a list, with this probability'),
  listMalformed: optional('probability:kind', 'send malformed lists', pair(probability, malformation)),
  listFaultsOf: withDefault(
    'list',
    'both',
    'the lists that these faults apply to',
    oneOf('both', 'sandboxes', 'containers'),
  ),

  restart: optional(
    'every:down',
    'restart the process periodically, such as 1m:2s for 2 s down after each minute',
    pair(milliseconds, milliseconds),
  ),
  restartHow: withDefault('how', 'killed', 'how the process goes down', oneOf('killed', 'stopped')),
  restartExits: chance('end each running container while the process is down, with this probability'),
  restartAs: optional('name', 'the profile after the first restart', oneOf(...PROFILE_NAMES)),
  starting: withDefault(
    'duration',
    '0',
    'refuse every call but Version for this time after a start',
    duration(0, HOUR_MS),
  ),
  crash: withDefault(
    'probability',
    '0.5',
    'the probability that a disconnect crashes a CRI-O from 1.28 to 1.32',
    probability,
  ),
  neighbourFreeze: optional(
    'every:for',
    'let another subscriber stop reading periodically, such as 1m:40s for 40 s after each minute',
    pair(milliseconds, milliseconds),
  ),
  freeze: toggle('let a subscriber that does not read freeze containerd 2, instead of cutting it off'),
  podsApi: optional('path', 'the unix socket of the PodsAPI of a simulated kubelet', string),
  eventedPleg: toggle('let this kubelet notice changes by events, instead of once a second'),
  loseStatus: chance('keep each change of its status from its watchers, with this probability'),
  wallStep: optional('after:by', 'step the runtime’s wall clock, such as 10s:-1h', wallStep),
};

export type SimulateRuntimeConfig = ConfigOf<typeof SIMULATE_RUNTIME_SETTINGS>;

/** Runs until the signal is aborted. Throws SETTING_INVALID when the socket cannot be used. */
export async function simulateRuntime(config: SimulateRuntimeConfig, signal: AbortSignal): Promise<void> {
  const runtime = await startSimulatedRuntime(runtimeOptions(config));
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  signal.addEventListener('abort', () => resolve(), { once: true });
  try {
    // Churn ends only when it fails; without churn the runtime serves its socket until the abort.
    await Promise.race([aborted, runtime.finished().then(() => aborted)]);
  } finally {
    await runtime.stop();
  }
}

/** The runtime options for these settings. */
export function runtimeOptions(config: SimulateRuntimeConfig): SimulatedRuntimeOptions {
  const { socket, seed, profile, breakStream, replay, freeze, neighbourFreeze, wallStep: step } = config;
  return {
    ...{ socket, seed, profile, replay, freeze },
    ...churnOf(config),
    faults: faultsOf(config),
    listFaults: callFaultsOf(config),
    breakStreamAfterMs: breakStream?.[0],
    breakStreamWith: breakStream?.[1],
    crashProbability: config.crash,
    startingMs: config.starting / 1000,
    neighbourFreezes:
      neighbourFreeze === undefined ? undefined : { everyMs: neighbourFreeze[0], forMs: neighbourFreeze[1] },
    restarts: restartsOf(config),
    wallSteps: step === undefined ? [] : [step],
    kubelet:
      config.podsApi === undefined
        ? undefined
        : { podsApi: config.podsApi, evented: config.eventedPleg, loses: config.loseStatus },
    truthFile: config.truth,
    keepTruth: false,
  };
}

function churnOf(config: SimulateRuntimeConfig): Pick<SimulatedRuntimeOptions, 'churn'> {
  const { pods, podLifetime, restarts, removalLag: leadMs, odd = {}, oddFor: oddForMs } = config;
  if (pods === 0) return {};
  return { churn: { pods, meanMs: podLifetime / 1000, restarts, leadMs, odds: odd, oddForMs } };
}

function restartsOf(config: SimulateRuntimeConfig): RestartPlan | undefined {
  const { restart, restartHow: how, restartExits: exits, restartAs } = config;
  if (restart === undefined) return undefined;
  const [everyMs, downMs] = restart;
  return { everyMs, downMs, how, exits, as: restartAs };
}

function faultsOf(config: SimulateRuntimeConfig): EventFault[] {
  const { seed, dropTypes: types, delay: late, wrongCreatedAt: stamp, malformed: bad } = config;
  const faults = [
    config.drop > 0 && drop({ seed, probability: config.drop, types }),
    late !== undefined && delay({ seed, probability: late[0] }, late[1]),
    config.duplicate > 0 && duplicate({ seed, probability: config.duplicate }),
    config.reorder > 0 && reorder({ seed, probability: config.reorder }),
    config.backlogHoles > 0 && backlogHoles({ seed, probability: config.backlogHoles }),
    stamp !== undefined && wrongCreatedAt({ seed, probability: stamp[1] }, stamp[0]),
    config.nilStatus > 0 && nilStatus({ seed, probability: config.nilStatus }),
    config.partialStatuses > 0 && partialStatuses({ seed, probability: config.partialStatuses }),
    bad !== undefined && malformed({ seed, probability: bad[0] }, bad[1] === null ? undefined : [bad[1]]),
  ];
  return faults.filter((fault) => fault !== false);
}

function callFaultsOf(config: SimulateRuntimeConfig): ListFault[] {
  const { seed, listFaultsOf: of, listSlow: slow, listFail: fail, listMalformed: bad } = config;
  const faults = [
    slow !== undefined && slowLists({ seed, of, probability: slow[0] }, slow[1]),
    config.listHang > 0 && hangingLists({ seed, of, probability: config.listHang }),
    fail !== undefined && failingLists({ seed, of, probability: fail[0] }, fail[1]),
    config.listPad > 0 && paddedLists({ seed, of }, config.listPad),
    config.listOversize > 0 && oversizedLists({ seed, of, probability: config.listOversize }),
    bad !== undefined && malformedLists({ seed, of, probability: bad[0] }, bad[1]),
  ];
  return faults.filter((fault) => fault !== false);
}
