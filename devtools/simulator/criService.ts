/*
 * The CRI service of a simulated runtime: the unary calls, the lists and the event stream.
 */
import { type MethodDefinition, type Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import { type ContainerConfig, NamespaceMode, type PodSandboxConfig } from '../../src/cri/runtime.ts';
import { CRI_METHODS, EVENTS_PATH } from './criClient.ts';
import { containerStatus, sandboxMessage, statusesFor } from './criMessages.ts';
import type { ListOutcome, ListRequest } from './lister.ts';
import { IllegalStep, type SimulatedContainerSpec, type SimulatedPodSpec } from './podModel.ts';
import type { Profile } from './profiles.ts';
import type { RuntimeCore } from './runtimeCore.ts';
import type { EventStreamCall } from './subscriber.ts';

export interface CriServiceOptions {
  readonly core: RuntimeCore;
  readonly nowNs: () => bigint;
  readonly onEvents: (call: EventStreamCall) => void;
  /** Runs a callback later: the end of a command. */
  readonly later: (ms: number, run: () => void) => void;
}

type CallRefusal = { readonly code: status; readonly details: string };
const STARTING: CallRefusal = { code: status.UNAVAILABLE, details: 'server is not initialized yet' };
const unchanged = (message: Uint8Array): Buffer => Buffer.from(message);

/** Registers every call with a server. */
export function serve(server: Server, options: CriServiceOptions): void {
  serveReading(server, options);
  serveLists(server, options);
  serveLifecycle(server, options);
  serveEvents(server, options);
}

function serveReading(server: Server, options: CriServiceOptions): void {
  const { core, nowNs } = options;
  const { pods, profile } = core;
  unary(server, null, CRI_METHODS.version, () => ({
    version: '0.1.0',
    runtimeName: profile.runtimeName,
    runtimeVersion: profile.runtimeVersion,
    runtimeApiVersion: 'v1',
  }));
  unary(server, core, CRI_METHODS.podSandboxStatus, ({ podSandboxId }) => {
    if (core.hangingStatuses.has(podSandboxId)) return null;
    const sandbox = pods.sandbox(podSandboxId);
    if (sandbox.shown === 'absent') throw notFound(podSandboxId);
    const { statusHasContainers } = profile;
    return {
      status: sandboxMessage(sandbox),
      containersStatuses: statusHasContainers ? statusesFor(pods, sandbox.id, sandbox.pod.uid, profile) : [],
      timestamp: timestampOf(profile, nowNs()),
    };
  });
  unary(
    server,
    core,
    CRI_METHODS.containerStatus,
    ({ containerId }) => {
      if (core.hangingStatuses.has(containerId)) return null;
      const container = pods.container(containerId);
      if (container.shown === 'absent') throw notFound(containerId);
      return { status: containerStatus(container) };
    },
    ({ containerId }, run) => core.statusLocks.whenFree(containerId, run),
  );
}

function timestampOf({ statusTimestamp }: Profile, nowNs: bigint): bigint {
  if (statusTimestamp === null) return 0n;
  return statusTimestamp === 'seconds' ? nowNs / 1_000_000_000n : nowNs;
}

const notFound = (id: string) => new IllegalStep('not-found', `could not find "${id}": not found`);

function serveLists(server: Server, { core }: CriServiceOptions): void {
  list(server, core, CRI_METHODS.listPodSandbox, ({ filter }) => ({ call: 'listPodSandbox', filter }));
  list(server, core, CRI_METHODS.listContainers, ({ filter }) => ({ call: 'listContainers', filter }));
  // A method that is not registered is UNIMPLEMENTED.
  if (core.profile.listBatch === null) return;
  const { streamPodSandboxes, streamContainers } = CRI_METHODS;
  streamingList(server, core, streamPodSandboxes, ({ filter }) => ({ call: 'streamPodSandboxes', filter }));
  streamingList(server, core, streamContainers, ({ filter }) => ({ call: 'streamContainers', filter }));
}

function serveLifecycle(server: Server, { core, later }: CriServiceOptions): void {
  const { pods } = core;
  changing(server, core, CRI_METHODS.runPodSandbox, ({ config }) => ({
    podSandboxId: pods.runPod(podSpec(config)).id,
  }));
  changing(server, core, CRI_METHODS.createContainer, ({ podSandboxId, config }) => ({
    containerId: pods.createContainer(podSandboxId, containerSpec(config)).id,
  }));
  changing(server, core, CRI_METHODS.startContainer, ({ containerId }) => {
    pods.startContainer(containerId);
    const end = endOf(pods.container(containerId).command);
    if (end !== null) {
      later(end.afterMs, () => {
        if (pods.containers.has(containerId)) pods.exitContainer(containerId, { exitCode: end.exitCode });
      });
    }
    return {};
  });
  changing(server, core, CRI_METHODS.stopContainer, ({ containerId }) => {
    if (pods.containers.has(containerId)) pods.stopContainer(containerId);
    return {};
  });
  changing(server, core, CRI_METHODS.removeContainer, ({ containerId }) => {
    if (pods.containers.has(containerId)) pods.removeContainer(containerId);
    return {};
  });
  changing(server, core, CRI_METHODS.stopPodSandbox, ({ podSandboxId }) => {
    if (pods.sandboxes.has(podSandboxId)) pods.stopPod(podSandboxId);
    return {};
  });
  changing(server, core, CRI_METHODS.removePodSandbox, ({ podSandboxId }) => {
    if (!pods.sandboxes.has(podSandboxId)) return {};
    pods.beginRemoval(podSandboxId);
    pods.finishRemoval(podSandboxId);
    return {};
  });
}

function serveEvents(server: Server, { core, onEvents }: CriServiceOptions): void {
  const { requestDeserialize } = CRI_METHODS.getContainerEvents;
  const handler = (call: EventStreamCall): void => {
    const { stream, refusal: details } = core.profile;
    if (core.isStarting) call.emit('error', STARTING);
    else if (stream === 'disabled') call.end();
    else if (stream === 'unimplemented') {
      call.emit('error', { code: status.UNIMPLEMENTED, details });
    } else onEvents(call);
  };
  server.register(EVENTS_PATH, handler, unchanged, requestDeserialize, 'serverStream');
}

type Callback<A> = (error: object | null, value?: A) => void;

/** A read-only call; null is never answered, and one that waits for a lock later. Without a core it is answered even while the runtime starts. */
function unary<Q, A>(
  server: Server,
  core: RuntimeCore | null,
  method: MethodDefinition<Q, A>,
  answer: (request: Q) => A | null,
  whenFree: (request: Q, run: () => void) => void = (_, run) => run(),
): void {
  const { path, responseSerialize, requestDeserialize } = method;
  const handler = ({ request }: { readonly request: Q }, callback: Callback<A>): void => {
    if (core?.isStarting === true) callback(STARTING);
    else whenFree(request, () => attempt(() => answer(request), callback));
  };
  server.register<Q, A>(path, handler, responseSerialize, requestDeserialize, 'unary');
}

/** A call that changes state: it neither begins nor returns while the runtime is frozen. */
function changing<Q, A>(
  server: Server,
  core: RuntimeCore,
  method: MethodDefinition<Q, A>,
  answer: (request: Q) => A,
): void {
  const { path, responseSerialize, requestDeserialize } = method;
  const { channel } = core;
  const handler = ({ request }: { readonly request: Q }, callback: Callback<A>): void => {
    if (core.isStarting) callback(STARTING);
    else {
      const later: Callback<A> = (error, value) => channel.whenFlowing(() => callback(error, value));
      channel.whenFlowing(() => attempt(() => answer(request), later));
    }
  };
  server.register<Q, A>(path, handler, responseSerialize, requestDeserialize, 'unary');
}

function attempt<A>(answer: () => A | null, callback: Callback<A>): void {
  let value: A | null;
  try {
    value = answer();
  } catch (error) {
    callback(refusal(error));
    return;
  }
  if (value !== null) callback(null, value);
}

type ListMethod<Q> = Pick<MethodDefinition<Q, unknown>, 'path' | 'requestDeserialize'>;

function list<Q>(
  server: Server,
  core: RuntimeCore,
  { path, requestDeserialize }: ListMethod<Q>,
  request: (asked: Q) => ListRequest,
): void {
  const handler = (call: { readonly request: Q }, callback: Callback<Uint8Array>): void => {
    if (core.isStarting) callback(STARTING);
    else {
      listWhenFree(core, request(call.request), ({ messages: [message], failure }) =>
        callback(failure, message ?? new Uint8Array()),
      );
    }
  };
  server.register<Q, Uint8Array>(path, handler, unchanged, requestDeserialize, 'unary');
}

function streamingList<Q>(
  server: Server,
  core: RuntimeCore,
  { path, requestDeserialize }: ListMethod<Q>,
  request: (asked: Q) => ListRequest,
): void {
  const answer = (call: ServerWritableStream<Q, Uint8Array>, { messages, failure }: ListOutcome): void => {
    for (const message of messages) call.write(message);
    if (failure === null) call.end();
    else call.emit('error', failure);
  };
  const handler = (call: ServerWritableStream<Q, Uint8Array>): void => {
    if (core.isStarting) call.emit('error', STARTING);
    else listWhenFree(core, request(call.request), (outcome) => answer(call, outcome));
  };
  server.register<Q, Uint8Array>(path, handler, unchanged, requestDeserialize, 'serverStream');
}

/** A list of containers reads the status of each. */
function listWhenFree(core: RuntimeCore, request: ListRequest, done: (outcome: ListOutcome) => void): void {
  const run = () => core.lister.list(request, done);
  if (request.call === 'listContainers' || request.call === 'streamContainers')
    core.statusLocks.whenFree(null, run);
  else run();
}

function refusal(error: unknown): CallRefusal {
  if (!(error instanceof IllegalStep)) return { code: status.INTERNAL, details: String(error) };
  const code = error.reason === 'not-found' ? status.NOT_FOUND : status.FAILED_PRECONDITION;
  return { code, details: error.message };
}

function podSpec(config: PodSandboxConfig | undefined): SimulatedPodSpec {
  const { metadata, labels = {}, annotations = {}, linux } = config ?? {};
  if (metadata === undefined) throw new IllegalStep('wrong-state', 'the sandbox config has no metadata');
  const { name, namespace, uid, attempt } = metadata;
  const sharedPid = linux?.securityContext?.namespaceOptions?.pid === NamespaceMode.POD;
  return { name, namespace, uid, attempt, labels, annotations, sharedPid };
}

function containerSpec(config: ContainerConfig | undefined): SimulatedContainerSpec {
  if (config?.metadata === undefined) {
    throw new IllegalStep('wrong-state', 'the container config has no metadata');
  }
  const { metadata, image, command, args, labels, annotations } = config;
  const { name, attempt } = metadata;
  return { name, attempt, image: image?.image ?? '', command: [...command, ...args], labels, annotations };
}

/** When a command ends: `true`, `false` and `sleep N` do; every other command runs until it is stopped. */
function endOf(command: readonly string[]): { readonly afterMs: number; readonly exitCode: number } | null {
  const [program, argument] = command;
  if (program === 'true' || program === 'false') return { afterMs: 0, exitCode: program === 'true' ? 0 : 1 };
  const seconds = Number(argument);
  return program === 'sleep' && seconds >= 0 ? { afterMs: seconds * 1000, exitCode: 0 } : null;
}
