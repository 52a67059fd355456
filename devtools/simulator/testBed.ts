/*
 * Helpers of the simulator's tests: runtimes in a temporary folder, subscribers, and the ground truth by its kinds.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServiceError, status } from '@grpc/grpc-js';
import { vi } from 'vitest';
import { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { type CriTestClient, connectCri } from './criClient.ts';
import type {
  EventFact,
  FaultFact,
  GroundTruthLog,
  TransitionFact,
  TruthEntry,
  ViewFact,
} from './groundTruth.ts';
import { type SimulatedRuntime, type SimulatedRuntimeOptions, startSimulatedRuntime } from './runtime.ts';
import type { VirtualRuntime } from './virtualRuntime.ts';

export interface RecordedEvents {
  readonly events: ContainerEventResponse[];
  readonly ended: Promise<{ readonly code: number }>;
  readonly cancel: () => void;
}

/** Runtimes and clients of one test; {@link close} ends them all. */
export class TestBed {
  readonly folder = mkdtempSync(join(tmpdir(), 'plegwatch-sim-'));
  readonly #runtimes: SimulatedRuntime[] = [];
  readonly #clients: CriTestClient[] = [];

  async start(options: Partial<SimulatedRuntimeOptions> = {}): Promise<SimulatedRuntime> {
    const runtime = await startSimulatedRuntime({ socket: join(this.folder, 'cri.sock'), ...options });
    this.#runtimes.push(runtime);
    return runtime;
  }

  connect(runtime: SimulatedRuntime): CriTestClient {
    const client = connectCri(runtime.socket);
    this.#clients.push(client);
    return client;
  }

  /** Subscribes and waits until the runtime has the subscription. */
  async listen(runtime: SimulatedRuntime, client = this.connect(runtime)): Promise<RecordedEvents> {
    const before = runtime.subscribers;
    const listener = subscribe(client);
    await vi.waitUntil(() => runtime.subscribers > before, { timeout: 240_000, interval: 5 });
    return listener;
  }

  async close(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.close();
    for (const runtime of this.#runtimes.splice(0)) await runtime.stop();
    rmSync(this.folder, { recursive: true });
  }
}

export function subscribe(client: CriTestClient): RecordedEvents {
  const events: ContainerEventResponse[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<{ readonly code: number }>();
  const stream = client.events();
  stream.on('data', (event: ContainerEventResponse) => events.push(event));
  stream.on('error', (error: ServiceError) => resolve({ code: error.code }));
  stream.on('end', () => resolve({ code: status.OK }));
  return { events, ended, cancel: () => stream.cancel() };
}

const ofKind =
  <T extends TruthEntry['what']>(what: T) =>
  (truth: GroundTruthLog) =>
    truth.entries.filter((entry): entry is TruthEntry & { what: T } => entry.what === what);

export const eventFacts: (truth: GroundTruthLog) => EventFact[] = ofKind('event');
export const transitionFacts: (truth: GroundTruthLog) => TransitionFact[] = ofKind('transition');
export const viewFacts: (truth: GroundTruthLog) => ViewFact[] = ofKind('view');

/** Events that were never delivered. One that waited has several entries: it is lost when none of them is a delivery. */
export const lostEvents = (truth: GroundTruthLog): EventFact[] =>
  [...Map.groupBy(eventFacts(truth), ({ event }) => event).values()].flatMap((entries) =>
    entries.some(({ delivered }) => delivered) ? [] : entries.slice(0, 1),
  );

/** The faults in the ground truth: those of one name, or all. */
export const faultFacts = (truth: GroundTruthLog, fault?: string): FaultFact[] =>
  ofKind('fault')(truth).filter((entry) => fault === undefined || entry.fault === fault);

export const shape = ({ containerId, containerEventType }: ContainerEventResponse, sandbox: string): string =>
  `${containerId === sandbox ? 'sandbox' : 'container'} ${EVENT_TYPES[containerEventType] ?? 'of no known type'}`;

/** Subscribes to a virtual runtime and records the messages, the decoded events and the end of the stream. */
export function subscribeVirtual(runtime: VirtualRuntime, hasRoom?: () => boolean) {
  const events: ContainerEventResponse[] = [];
  const messages: Uint8Array[] = [];
  const codes: status[] = [];
  const leave = runtime.subscribe({
    receive: (message) => {
      messages.push(message);
      events.push(decoded(message));
    },
    ended: (code) => codes.push(code),
    ...(hasRoom === undefined ? {} : { hasRoom }),
  });
  return { events, messages, codes, leave };
}

/** The decoded event; an empty one where the message is malformed. */
function decoded(message: Uint8Array): ContainerEventResponse {
  try {
    return ContainerEventResponse.decode(message);
  } catch {
    return ContainerEventResponse.decode(new Uint8Array());
  }
}

/** Plays one pod with one container from its creation to its removal, as the kubelet does. */
export function playPod({ pods }: VirtualRuntime['core'], explicitRemoval = true): string {
  const { id } = pods.runPod({ name: 'web' });
  const container = pods.createContainer(id, { name: 'app' }).id;
  pods.startContainer(container);
  pods.exitContainer(container);
  pods.stopPod(id);
  if (explicitRemoval) pods.removeContainer(container);
  pods.beginRemoval(id);
  pods.finishRemoval(id);
  return id;
}
