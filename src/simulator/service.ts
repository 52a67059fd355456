/*
 * The CRI of a simulated runtime: each call as a function from its request to its answer, and the event stream.
 */
import { type MethodDefinition, type Server, status } from '@grpc/grpc-js';
import type { ContainerConfig, PodSandboxConfig } from '../cri/runtime.ts';
import {
  containerMatches,
  containerMessage,
  containerStatus,
  sandboxMatches,
  sandboxMessage,
  statusesFor,
} from './messages.ts';
import { type ContainerSpec, IllegalStep, type PodSpec, type Pods } from './pods.ts';
import type { Profile } from './profiles.ts';
import type { Random } from './random.ts';
import type { EventCall } from './subscriber.ts';
import { EVENTS_PATH, WIRE } from './wire.ts';

export interface ServiceParts {
  readonly profile: Profile;
  readonly pods: Pods;
  /** For the order of the lists, which is another one at each call. */
  readonly order: Random;
  readonly nowNs: () => bigint;
  readonly onEvents: (call: EventCall) => void;
  /** Runs something later: the end of a command that ends by itself. */
  readonly later: (ms: number, run: () => void) => void;
}

/** Registers every call with a server. */
export function serve(server: Server, parts: ServiceParts): void {
  serveReading(server, parts);
  serveLifecycle(server, parts);
  serveEvents(server, parts);
}

function serveReading(server: Server, { profile, pods, order, nowNs }: ServiceParts): void {
  unary(server, WIRE.version, () => ({
    version: '0.1.0',
    runtimeName: profile.runtimeName,
    runtimeVersion: profile.runtimeVersion,
    runtimeApiVersion: 'v1',
  }));
  unary(server, WIRE.listPodSandbox, ({ filter }) => {
    const all = [...pods.sandboxes.values()].map(sandboxMessage);
    return { items: order.shuffle(all.filter((sandbox) => sandboxMatches(filter, sandbox))) };
  });
  unary(server, WIRE.listContainers, ({ filter }) => {
    const all = [...pods.containers.values()].map(containerMessage);
    return { containers: order.shuffle(all.filter((container) => containerMatches(filter, container))) };
  });
  unary(server, WIRE.podSandboxStatus, ({ podSandboxId }) => {
    const sandbox = pods.sandbox(podSandboxId);
    const complete = profile.statusIsComplete;
    return {
      status: sandboxMessage(sandbox),
      containersStatuses: complete ? statusesFor(pods, sandbox.id, sandbox.pod.uid, profile) : [],
      timestamp: complete ? nowNs() : 0n,
    };
  });
  unary(server, WIRE.containerStatus, ({ containerId }) => ({
    status: containerStatus(pods.container(containerId)),
  }));
}

function serveLifecycle(server: Server, { pods, later }: ServiceParts): void {
  unary(server, WIRE.runPodSandbox, ({ config }) => ({ podSandboxId: pods.runPod(podSpec(config)).id }));
  unary(server, WIRE.createContainer, ({ podSandboxId, config }) => ({
    containerId: pods.createContainer(podSandboxId, containerSpec(config)).id,
  }));
  unary(server, WIRE.startContainer, ({ containerId }) => {
    pods.startContainer(containerId);
    const end = endOf(pods.container(containerId).command);
    if (end !== null) {
      later(end.afterMs, () => {
        if (pods.containers.has(containerId)) pods.exitContainer(containerId, { exitCode: end.exitCode });
      });
    }
    return {};
  });
  unary(server, WIRE.stopContainer, ({ containerId }) => {
    if (pods.containers.get(containerId)?.state === 'running') {
      pods.exitContainer(containerId, { exitCode: 137 });
    }
    return {};
  });
  unary(server, WIRE.removeContainer, ({ containerId }) => {
    if (pods.containers.has(containerId)) pods.removeContainer(containerId);
    return {};
  });
  unary(server, WIRE.stopPodSandbox, ({ podSandboxId }) => {
    if (pods.sandboxes.has(podSandboxId)) pods.stopPod(podSandboxId);
    return {};
  });
  unary(server, WIRE.removePodSandbox, ({ podSandboxId }) => {
    if (!pods.sandboxes.has(podSandboxId)) return {};
    pods.beginRemoval(podSandboxId);
    pods.finishRemoval(podSandboxId);
    return {};
  });
}

function serveEvents(server: Server, { profile, onEvents }: ServiceParts): void {
  const { requestDeserialize } = WIRE.getContainerEvents;
  const asItIs = (message: Uint8Array): Buffer => Buffer.from(message);
  const handler = (call: EventCall): void => {
    if (profile.stream === 'disabled') call.end();
    else if (profile.stream === 'unimplemented') {
      const details = 'method GetContainerEvents not implemented';
      call.emit('error', { code: status.UNIMPLEMENTED, details });
    } else onEvents(call);
  };
  server.register(EVENTS_PATH, handler, asItIs, requestDeserialize, 'serverStream');
}

function unary<Q, A>(server: Server, method: MethodDefinition<Q, A>, answer: (request: Q) => A): void {
  server.register<Q, A>(
    method.path,
    (call: { readonly request: Q }, callback: (error: object | null, value?: A) => void) => {
      try {
        callback(null, answer(call.request));
      } catch (error) {
        callback(refusal(error));
      }
    },
    method.responseSerialize,
    method.requestDeserialize,
    'unary',
  );
}

function refusal(error: unknown): { readonly code: status; readonly details: string } {
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
