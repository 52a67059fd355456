/*
 * `plegwatch-dev simulate runtime`: the settings, and a runtime that lives until it is told to stop.
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
  seed: withDefault('number', '1', 'the same seed gives the same lives and faults', integer(0, 2 ** 31 - 1)),
  profile: withDefault('name', 'containerd-2.1', 'the runtime to behave like', oneOf(...PROFILE_NAMES)),
  truth: optional('file', 'write what really happened, one JSON line each', string),

  pods: withDefault('number', '10', 'pods that live at the same time', integer(0, 5000)),
  podLife: withDefault('duration', '20s', 'mean length of a pod’s life', duration(500, 24 * HOUR_MS)),
  restarts: withDefault('number', '0.4', 'restarts of a container in one life, on average', decimal(0, 10)),
  removalLag: withDefault(
    'duration',
    '200ms',
    'how long a sandbox may stay listed while it is removed',
    milliseconds,
  ),
  odd: optional('kind:probability,…', 'lives that are odd, such as failed-start:0.1,regression:0.05', odds),
  oddFor: withDefault('duration', '3s', 'how long what is odd lasts', milliseconds),

  drop: chance('lose each event with this probability'),
  dropTypes: optional('types', 'lose only these, such as STARTED,STOPPED', eventTypes),
  delay: optional(
    'probability:duration',
    'hold events back, such as 0.01:3s',
    pair(probability, milliseconds),
  ),
  duplicate: chance('send an event twice with this probability'),
  reorder: chance('let an event be overtaken by the next of its id with this probability'),
  replay: withDefault(
    'number',
    '0',
    'send so many earlier events to whoever subscribes',
    integer(0, 100_000),
  ),
  backlogHoles: chance('lose each event that nobody was there to hear'),
  wrongCreatedAt: optional(
    'kind:probability',
    `stamp events wrongly: ${WRONG_CREATED_AT.join(', ')}`,
    pair(nameOf(WRONG_CREATED_AT), probability),
  ),
  nilStatus: chance('send an event without its sandbox’s status'),
  partialStatuses: chance('send an event with incomplete statuses of its containers'),
  malformed: optional(
    'probability[:kind]',
    `send bytes that are no good event: ${MALFORMATIONS.join(', ')}`,
    pairOr(probability, malformation, null),
  ),
  breakStream: optional(
    'after[:status]',
    'end each event stream this long after it began, such as 30s or 30s:OK',
    pairOr(milliseconds, statusCode, undefined),
  ),

  listSlow: optional(
    'probability:duration',
    'let a list take so long, such as 0.1:2s',
    pair(probability, milliseconds),
  ),
  listHang: chance('never answer a list'),
  listFail: optional(
    'probability:status',
    'let a list fail, such as 0.1:UNAVAILABLE',
    pair(probability, statusCode),
  ),
  listPad: withDefault('size', '0', 'make every item of a list larger', bytes(0, 2 ** 30)),
  listOversize: chance('make a list larger than a message may be'),
  listMalformed: optional(
    'probability:kind',
    'answer a list with bad bytes',
    pair(probability, malformation),
  ),
  listFaultsOf: withDefault(
    'list',
    'both',
    'which lists these faults are for',
    oneOf('both', 'sandboxes', 'containers'),
  ),

  restart: optional(
    'every:down',
    'restart the process so often, and so long, such as 1m:2s',
    pair(milliseconds, milliseconds),
  ),
  restartHow: withDefault('how', 'killed', 'how it goes down', oneOf('killed', 'stopped')),
  restartExits: chance('end each running container while the process is down'),
  restartAs: optional('name', 'the runtime that it comes back as', oneOf(...PROFILE_NAMES)),
  starting: withDefault(
    'duration',
    '0',
    'refuse every call but Version so long after coming up',
    duration(0, HOUR_MS),
  ),
  crash: withDefault(
    'probability',
    '0.5',
    'how likely a disconnect ends a runtime that can die of it',
    probability,
  ),
  freeze: toggle('let a subscriber that does not read freeze a containerd 2, instead of cutting it off'),
  wallStep: optional('after:by', 'let the runtime’s wall clock jump, such as 10s:-1h', wallStep),
};

export type SimulateRuntimeConfig = ConfigOf<typeof SIMULATE_RUNTIME_SETTINGS>;

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
  const {
    socket,
    seed,
    profile,
    breakStream,
    truth,
    replay,
    freeze,
    starting,
    crash,
    wallStep: step,
  } = config;
  return {
    socket,
    seed,
    profile,
    ...churnOf(config),
    faults: faultsOf(config),
    listFaults: callFaultsOf(config),
    breakStreamAfterMs: breakStream?.[0],
    breakStreamWith: breakStream?.[1],
    replay,
    freeze,
    crashProbability: crash,
    startingMs: starting / 1000,
    restarts: restartsOf(config),
    wallSteps: step === undefined ? [] : [step],
    truthFile: truth,
    keepTruth: false,
  };
}

function churnOf(config: SimulateRuntimeConfig): Pick<SimulatedRuntimeOptions, 'churn'> {
  const { pods, podLife, restarts, removalLag: leadMs, odd = {}, oddFor: oddForMs } = config;
  if (pods === 0) return {};
  return { churn: { pods, meanMs: podLife / 1000, restarts, leadMs, odds: odd, oddForMs } };
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
