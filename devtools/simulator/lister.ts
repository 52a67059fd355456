/*
 * The lists of a simulated runtime, with the list faults applied.
 *
 *   request ── part of the wait ──► snapshot of the lists ── the rest of the wait ──► response
 */
import { status } from '@grpc/grpc-js';
import {
  type ContainerFilter,
  ListContainersResponse,
  ListPodSandboxResponse,
  type PodSandboxFilter,
} from '../../src/cri/runtime.ts';
import { containerMatches, listedContainers, listedSandboxes, sandboxMatches } from './criMessages.ts';
import type { GroundTruthLog } from './groundTruth.ts';
import { type CriListName, type ListFate, type ListFault, listFateOf } from './listFaults.ts';
import { mangle } from './messageFaults.ts';
import type { SimulatedPods } from './pods.ts';
import type { Profile } from './profiles.ts';
import { randomFor } from './random.ts';

interface ListFailure {
  readonly code: status;
  readonly details: string;
}

/** The encoded messages of a response, and its failure. Messages before a failure are not a complete list. */
export interface ListOutcome {
  readonly messages: readonly Uint8Array[];
  readonly failure: ListFailure | null;
}

export type ListRequest =
  | { readonly call: 'listPodSandbox'; readonly filter?: PodSandboxFilter | undefined }
  | { readonly call: 'streamPodSandboxes'; readonly filter?: PodSandboxFilter | undefined }
  | { readonly call: 'listContainers'; readonly filter?: ContainerFilter | undefined }
  | { readonly call: 'streamContainers'; readonly filter?: ContainerFilter | undefined };

export interface ListerOptions {
  readonly profile: Profile;
  readonly pods: SimulatedPods;
  readonly truth: GroundTruthLog;
  readonly seed: number;
  /** Called for every list; the faults may change between calls. */
  readonly faults: () => readonly ListFault[];
  readonly later: (ms: number, run: () => void) => void;
}

interface Padded {
  readonly annotations: Readonly<Record<string, string>>;
}

export class Lister {
  readonly #options: ListerOptions;
  readonly #counts = new Map<CriListName, number>();
  #lists = 0;

  constructor(options: ListerOptions) {
    this.#options = options;
  }

  /** Calls back once, or never where the call hangs. */
  list(request: ListRequest, done: (outcome: ListOutcome) => void): void {
    const { call } = request;
    const number = (this.#counts.get(call) ?? 0) + 1;
    this.#counts.set(call, number);
    const { names, fate } = listFateOf(this.#options.faults(), { call, number });
    for (const fault of names) this.#noteFault(fault, call, number, fate);
    const { waitMs = 0 } = fate;
    if (waitMs === Number.POSITIVE_INFINITY) return;
    if (waitMs === 0) done(this.#answer(request, fate));
    else {
      const before = waitMs * randomFor(this.#options.seed, 'moment', call, number).next();
      this.#options.later(before, () => {
        const outcome = this.#answer(request, fate);
        this.#options.later(waitMs - before, () => done(outcome));
      });
    }
  }

  #answer(request: ListRequest, fate: ListFate): ListOutcome {
    const { listBatch, maxSendBytes } = this.#options.profile;
    const streams = request.call === 'streamPodSandboxes' || request.call === 'streamContainers';
    if (streams && listBatch === null) return failed(status.UNIMPLEMENTED, `unknown method ${request.call}`);
    if (!streams && fate.code !== undefined) return failed(fate.code, 'the list failed on purpose');
    const messages = this.#messages(request, fate, streams ? listBatch : null);
    const large = messages.find(({ length }) => length > maxSendBytes);
    if (large !== undefined) {
      // The message of grpc-go.
      const sizes = `${large.length} vs. ${maxSendBytes}`;
      return failed(status.RESOURCE_EXHAUSTED, `grpc: trying to send message larger than max (${sizes})`);
    }
    if (fate.code === undefined) return { messages, failure: null };
    return {
      messages: messages.slice(0, 1),
      failure: { code: fate.code, details: 'the list broke on purpose' },
    };
  }

  #messages(request: ListRequest, fate: ListFate, batch: number | null): Uint8Array[] {
    this.#lists += 1;
    const random = randomFor(this.#options.seed, 'order', this.#lists);
    const encoded = encodedItems(this.#options.pods, request, (items) =>
      cut(random.shuffle(items), fate, batch),
    );
    const { malformation } = fate;
    return malformation === undefined ? encoded : encoded.map((bytes) => mangle(bytes, malformation, random));
  }

  #noteFault(fault: string, call: CriListName, number: number, fate: ListFate): void {
    const detail = `${call} ${number}: ${describe(fate)}`;
    this.#options.truth.record({ what: 'fault', fault, event: null, id: null, type: null, detail });
  }
}

// A batch of a streaming list has its items in field 1, as the unary response has.
function encodedItems(
  pods: SimulatedPods,
  request: ListRequest,
  batches: <T extends Padded>(items: readonly T[]) => T[][],
): Uint8Array[] {
  if (request.call === 'listPodSandbox' || request.call === 'streamPodSandboxes') {
    const { filter } = request;
    const listed = listedSandboxes(pods).filter((item) => sandboxMatches(filter, item));
    return batches(listed).map((items) => ListPodSandboxResponse.encode({ items }).finish());
  }
  const { filter } = request;
  const listed = listedContainers(pods).filter((item) => containerMatches(filter, item));
  return batches(listed).map((containers) => ListContainersResponse.encode({ containers }).finish());
}

/** Pads the items and splits them into batches; without a batch size there is exactly one. */
function cut<T extends Padded>(items: readonly T[], fate: ListFate, batch: number | null): T[][] {
  const { padBytes = 0, padToBytes = 0 } = fate;
  const each = Math.max(padBytes, Math.ceil(padToBytes / Math.max(items.length, 1)));
  const padding = { 'plegwatch.local/padding': 'x'.repeat(each) };
  const grown =
    each === 0 ? items : items.map((item) => ({ ...item, annotations: { ...item.annotations, ...padding } }));
  if (batch === null) return [[...grown]];
  return Array.from({ length: Math.ceil(grown.length / batch) }, (_, n) =>
    grown.slice(n * batch, (n + 1) * batch),
  );
}

const failed = (code: status, details: string): ListOutcome => ({
  messages: [],
  failure: { code, details },
});

const describe = (fate: ListFate): string =>
  Object.entries(fate)
    .map(([key, value]) => `${key} ${key === 'code' ? status[Number(value)] : value}`)
    .join(', ');
