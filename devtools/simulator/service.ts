/*
 * The CRI of a simulated runtime: each call as a function from its request to its answer, and the event stream.
 */
import { type MethodDefinition, type Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import type { ContainerConfig, PodSandboxConfig } from '../../src/cri/runtime.ts';
import type { RuntimeCore } from './core.ts';
import { type ContainerSpec, IllegalStep, type PodSpec } from './items.ts';
import type { ListOutcome, ListRequest } from './lister.ts';
import { containerStatus, sandboxMessage, statusesFor } from './messages.ts';
import type { Profile } from './profiles.ts';
import type { EventCall } from './subscriber.ts';
import { EVENTS_PATH, WIRE } from './wire.ts';

export interface ServiceParts {
  readonly core: RuntimeCore;
  readonly nowNs: () => bigint;
  readonly onEvents: (call: EventCall) => void;
  /** Runs something later: the end of a command that ends by itself. */
  readonly later: (ms: number, run: () => void) => void;
}

type Refusal = { readonly code: status; readonly details: string };
const STARTING: Refusal = { code: status.UNAVAILABLE, details: 'server is not initialized yet' };
const asItIs = (message: Uint8Array): Buffer => Buffer.from(message);

/** Registers every call with a server. */
export function serve(server: Server, parts: ServiceParts): void {
  serveReading(server, parts);
  serveLists(server, parts);
  serveLifecycle(server, parts);
  serveEvents(server, parts);
}

function serveReading(server: Server, parts: ServiceParts): void {
  const { core, nowNs } = parts;
  const { pods, profile } = core;
  unary(server, null, WIRE.version, () => ({
    version: '0.1.0',
    runtimeName: profile.runtimeName,
    runtimeVersion: profile.runtimeVersion,
    runtimeApiVersion: 'v1',
  }));
  unary(server, core, WIRE.podSandboxStatus, ({ podSandboxId }) => {
    const sandbox = pods.sandbox(podSandboxId);
    if (sandbox.shown === 'absent') throw notFound(podSandboxId);
    const { statusHasContainers } = profile;
    return {
      status: sandboxMessage(sandbox),
      containersStatuses: statusHasContainers ? statusesFor(pods, sandbox.id, sandbox.pod.uid, profile) : [],
      timestamp: timestampOf(profile, nowNs()),
    };
  });
  unary(server, core, WIRE.containerStatus, ({ containerId }) => {
    const container = pods.container(containerId);
    if (container.shown === 'absent') throw notFound(containerId);
    return { status: containerStatus(container) };
  });
}

function timestampOf({ statusTimestamp }: Profile, nowNs: bigint): bigint {
  if (statusTimestamp === null) return 0n;
  return statusTimestamp === 'seconds' ? nowNs / 1_000_000_000n : nowNs;
}

const notFound = (id: string) => new IllegalStep('not-found', `could not find "${id}": not found`);

function serveLists(server: Server, { core }: ServiceParts): void {
  list(server, core, WIRE.listPodSandbox, ({ filter }) => ({ call: 'listPodSandbox', filter }));
  list(server, core, WIRE.listContainers, ({ filter }) => ({ call: 'listContainers', filter }));
  // What is not registered is UNIMPLEMENTED.
  if (core.profile.listBatch === null) return;
  streamingList(server, core, WIRE.streamPodSandboxes, ({ filter }) => ({
    call: 'streamPodSandboxes',
    filter,
  }));
  streamingList(server, core, WIRE.streamContainers, ({ filter }) => ({ call: 'streamContainers', filter }));
}

function serveLifecycle(server: Server, { core, later }: ServiceParts): void {
  const { pods } = core;
  changing(server, core, WIRE.runPodSandbox, ({ config }) => ({
    podSandboxId: pods.runPod(podSpec(config)).id,
  }));
  changing(server, core, WIRE.createContainer, ({ podSandboxId, config }) => ({
    containerId: pods.createContainer(podSandboxId, containerSpec(config)).id,
  }));
  changing(server, core, WIRE.startContainer, ({ containerId }) => {
    pods.startContainer(containerId);
    const end = endOf(pods.container(containerId).command);
    if (end !== null) {
      later(end.afterMs, () => {
        if (pods.containers.has(containerId)) pods.exitContainer(containerId, { exitCode: end.exitCode });
      });
    }
    return {};
  });
  changing(server, core, WIRE.stopContainer, ({ containerId }) => {
    if (pods.containers.get(containerId)?.state === 'running') {
      pods.stopContainer(containerId);
    }
    return {};
  });
  changing(server, core, WIRE.removeContainer, ({ containerId }) => {
    if (pods.containers.has(containerId)) pods.removeContainer(containerId);
    return {};
  });
  changing(server, core, WIRE.stopPodSandbox, ({ podSandboxId }) => {
    if (pods.sandboxes.has(podSandboxId)) pods.stopPod(podSandboxId);
    return {};
  });
  changing(server, core, WIRE.removePodSandbox, ({ podSandboxId }) => {
    if (!pods.sandboxes.has(podSandboxId)) return {};
    pods.beginRemoval(podSandboxId);
    pods.finishRemoval(podSandboxId);
    return {};
  });
}

function serveEvents(server: Server, { core, onEvents }: ServiceParts): void {
  const { requestDeserialize } = WIRE.getContainerEvents;
  const handler = (call: EventCall): void => {
    const { stream, refusal: details } = core.profile;
    if (core.isStarting) call.emit('error', STARTING);
    else if (stream === 'disabled') call.end();
    else if (stream === 'unimplemented') {
      call.emit('error', { code: status.UNIMPLEMENTED, details });
    } else onEvents(call);
  };
  server.register(EVENTS_PATH, handler, asItIs, requestDeserialize, 'serverStream');
}

type Callback<A> = (error: object | null, value?: A) => void;

/** A call that only reads. Without a core: one that is answered even while the runtime starts. */
function unary<Q, A>(
  server: Server,
  core: RuntimeCore | null,
  method: MethodDefinition<Q, A>,
  answer: (request: Q) => A,
): void {
  const { path, responseSerialize, requestDeserialize } = method;
  const handler = ({ request }: { readonly request: Q }, callback: Callback<A>): void => {
    if (core?.isStarting === true) callback(STARTING);
    else attempt(() => answer(request), callback);
  };
  server.register<Q, A>(path, handler, responseSerialize, requestDeserialize, 'unary');
}

/** A call that changes something: while the runtime stands still it neither begins nor ends. */
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

function attempt<A>(answer: () => A, callback: Callback<A>): void {
  let value: A;
  try {
    value = answer();
  } catch (error) {
    callback(refusal(error));
    return;
  }
  callback(null, value);
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
      core.lister.list(request(call.request), ({ messages: [message], failure }) =>
        callback(failure, message ?? new Uint8Array()),
      );
    }
  };
  server.register<Q, Uint8Array>(path, handler, asItIs, requestDeserialize, 'unary');
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
    else core.lister.list(request(call.request), (outcome) => answer(call, outcome));
  };
  server.register<Q, Uint8Array>(path, handler, asItIs, requestDeserialize, 'serverStream');
}

function refusal(error: unknown): Refusal {
  if (!(error instanceof IllegalStep)) return { code: status.INTERNAL, details: String(error) };
  const code = error.reason === 'not-found' ? status.NOT_FOUND : status.FAILED_PRECONDITION;
  return { code, details: error.message };
}

function podSpec(config: PodSandboxConfig | undefined): PodSpec {
  const { metadata, labels = {}, annotations = {} } = config ?? {};
  if (metadata === undefined) throw new IllegalStep('wrong-state', 'the sandbox config has no metadata');
  const { name, namespace, uid, attempt } = metadata;
  return { name, namespace, uid, attempt, labels, annotations };
}

function containerSpec(config: ContainerConfig | undefined): ContainerSpec {
  if (config?.metadata === undefined) {
    throw new IllegalStep('wrong-state', 'the container config has no metadata');
  }
  const { metadata, image, command, args, labels, annotations } = config;
  const { name, attempt } = metadata;
  return { name, attempt, image: image?.image ?? '', command: [...command, ...args], labels, annotations };
}

/** Commands that end by themselves: `true`, `false` and `sleep N`. Everything else runs until it is stopped. */
function endOf(command: readonly string[]): { readonly afterMs: number; readonly exitCode: number } | null {
  const [program, argument] = command;
  if (program === 'true' || program === 'false') return { afterMs: 0, exitCode: program === 'true' ? 0 : 1 };
  const seconds = Number(argument);
  return program === 'sleep' && seconds >= 0 ? { afterMs: seconds * 1000, exitCode: 0 } : null;
}
