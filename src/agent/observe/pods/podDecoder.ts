/*
 * Decodes the messages of the kubelet's PodsAPI (k8s.io/kubelet pkg/apis/pods/v1alpha1/api.proto). A message holds a whole pod (k8s.io/api
 * core/v1 generated.proto), with the values of its environment variables: only names, the UID, whether the kubelet ends it, and the
 * ids and states of its containers are read. Everything else is skipped by its length and never becomes a value of this program.
 */
import { bytesTag, MessageFields } from '../../../cri/fields.ts';
import { usableId } from '../../../cri/items.ts';
import { MAX_ITEM_BYTES, MalformedMessage } from '../../../cri/malformed.ts';
import type { KubeletContainer, KubeletPod } from '../../../protocol/observation.ts';
import { cleanText, MAX_ID_LENGTH, MAX_NAME_LENGTH } from '../../../protocol/text.ts';

/** More than any pod has; the pod is refused beyond it. */
const MAX_CONTAINERS = 256;
/** The longest scheme before an id, such as `containerd://`. */
const MAX_SCHEME_LENGTH = 64;

/** WatchPodsEvent and GetPodResponse. */
const EVENT_TYPE = 0x08;
const EVENT_POD = bytesTag(2);
const ANSWER_POD = bytesTag(1);
const ADDED = 1;
const MODIFIED = 2;
const DELETED = 3;
const INITIAL_SYNC_COMPLETE = 4;
/** Pod and ObjectMeta. */
const POD_METADATA = bytesTag(1);
const POD_STATUS = bytesTag(3);
const META_NAME = bytesTag(1);
const META_NAMESPACE = bytesTag(3);
const META_UID = bytesTag(5);
const META_DELETION_TIMESTAMP = bytesTag(9);
/** PodStatus: the phase; containers, init containers, ephemeral containers. */
const STATUS_PHASE = bytesTag(1);
const STATUSES: readonly number[] = [bytesTag(8), bytesTag(10), bytesTag(13)];
/** ContainerStatus. */
const CONTAINER_NAME = bytesTag(1);
const CONTAINER_STATE = bytesTag(2);
const CONTAINER_LAST_STATE = bytesTag(3);
const CONTAINER_ID = bytesTag(8);
/** ContainerState and ContainerStateTerminated. */
const STATE_RUNNING = bytesTag(2);
const STATE_TERMINATED = bytesTag(3);
const TERMINATED_ID = bytesTag(7);

const FINAL_PHASES: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

export type PodMessage =
  | { readonly is: 'pod'; readonly pod: KubeletPod }
  | { readonly is: 'removed'; readonly podUid: string }
  | { readonly is: 'synced' }
  /** The pod's containers could not be decoded. */
  | { readonly is: 'unknown'; readonly podUid: string }
  /** A type of event that this program does not know. */
  | { readonly is: 'other' };

/** Decodes a WatchPodsEvent. Throws MalformedMessage if not even the pod's UID can be decoded. */
export function readPodMessage(bytes: Buffer): PodMessage {
  mustBeBounded(bytes);
  const { type, pod } = eventOf(bytes);
  if (type === INITIAL_SYNC_COMPLETE) return { is: 'synced' };
  if (type !== ADDED && type !== MODIFIED && type !== DELETED) return { is: 'other' };
  const { metadata, status } = partsOf(pod);
  if (type === DELETED) return { is: 'removed', podUid: metadata.podUid };
  try {
    return { is: 'pod', pod: podOf(metadata, status) };
  } catch (error) {
    if (!(error instanceof MalformedMessage)) throw error;
    return { is: 'unknown', podUid: metadata.podUid };
  }
}

/** The type is 0 if it is not one of the small numbers that are known. */
function eventOf(bytes: Buffer): { readonly type: number; readonly pod: Buffer } {
  let type = 0;
  let pod: Buffer = Buffer.alloc(0);
  const fields = new MessageFields(bytes);
  while (fields.next()) {
    if (fields.tag === EVENT_TYPE) type = fields.body.length === 1 ? (fields.body[0] ?? 0) : 0;
    if (fields.tag === EVENT_POD) pod = fields.body;
  }
  return { type, pod };
}

/** Decodes a GetPodResponse. Throws MalformedMessage. */
export function readPodAnswer(bytes: Buffer): KubeletPod {
  mustBeBounded(bytes);
  let pod: Buffer = Buffer.alloc(0);
  const fields = new MessageFields(bytes);
  while (fields.next()) if (fields.tag === ANSWER_POD) pod = fields.body;
  const { metadata, status } = partsOf(pod);
  return podOf(metadata, status);
}

function mustBeBounded(bytes: Buffer): void {
  if (bytes.length > MAX_ITEM_BYTES) throw new MalformedMessage(`a message of ${bytes.length} bytes`);
}

type PodMetadata = Omit<KubeletPod, 'containers'>;

function partsOf(pod: Buffer): { readonly metadata: PodMetadata; readonly status: Buffer } {
  let metadata: Buffer = Buffer.alloc(0);
  let status: Buffer = Buffer.alloc(0);
  const fields = new MessageFields(pod);
  while (fields.next()) {
    if (fields.tag === POD_METADATA) metadata = fields.body;
    if (fields.tag === POD_STATUS) status = fields.body;
  }
  return { metadata: readMetadata(metadata), status };
}

function readMetadata(bytes: Buffer): PodMetadata {
  const found = { podUid: '', namespace: '', pod: '', isTerminating: false };
  const fields = new MessageFields(bytes);
  while (fields.next()) {
    if (fields.tag === META_NAME) found.pod = name(fields.body);
    if (fields.tag === META_NAMESPACE) found.namespace = name(fields.body);
    if (fields.tag === META_UID) found.podUid = name(fields.body);
    if (fields.tag === META_DELETION_TIMESTAMP) found.isTerminating = true;
  }
  if (found.podUid === '') throw new MalformedMessage('a pod without a UID');
  return found;
}

/**
 * A pod whose phase is final while a container of it runs has no deletionTimestamp, and the kubelet ends it all the same: it is evicted, has
 * taken longer than its activeDeadlineSeconds, or only sidecars are left (kubelet pkg/kubelet/pod_workers.go). If none runs, it has ended.
 */
function podOf(metadata: PodMetadata, status: Buffer): KubeletPod {
  const { containers, uncreated } = containersOf(status);
  const isFinal = hasFinalPhase(status);
  const runs = containers.some(({ state }) => state === 'running');
  return {
    ...metadata,
    isTerminating: metadata.isTerminating || (isFinal && runs),
    ...(isFinal && !runs ? { hasEnded: true } : {}),
    containers,
    ...(uncreated.length === 0 ? {} : { uncreated }),
  };
}

function hasFinalPhase(status: Buffer): boolean {
  let isFinal = false;
  const fields = new MessageFields(status);
  while (fields.next())
    if (fields.tag === STATUS_PHASE) isFinal = FINAL_PHASES.has(fields.body.toString('latin1', 0, 16));
  return isFinal;
}

function containersOf(status: Buffer): { containers: KubeletContainer[]; uncreated: string[] } {
  const containers = new Map<string, KubeletContainer>();
  const all = statusesOf(status).flatMap(readContainer);
  for (const each of all.filter(({ id }) => usableId(id))) {
    // A container that waits for its restart has the id of the one that ended, which only its last state shows as terminated.
    if (containers.get(each.id)?.state !== 'terminated') containers.set(each.id, each);
  }
  const uncreated = all.filter(({ id, state }) => id === '' && state === 'waiting');
  return { containers: [...containers.values()], uncreated: uncreated.map(({ name: of }) => of) };
}

function statusesOf(status: Buffer): Buffer[] {
  const statuses: Buffer[] = [];
  const fields = new MessageFields(status);
  while (fields.next()) {
    if (!STATUSES.includes(fields.tag)) continue;
    if (statuses.length === MAX_CONTAINERS)
      throw new MalformedMessage(`more than ${MAX_CONTAINERS} containers`);
    statuses.push(fields.body);
  }
  return statuses;
}

interface ShownIn {
  readonly state: KubeletContainer['state'];
  /** Empty unless the state is terminated and names the id. */
  readonly terminatedId: string;
}

/** The ids that the status of one container shows: the current one, those that it shows as terminated. Any may be empty. */
function readContainer(bytes: Buffer): KubeletContainer[] {
  let container = '';
  let id = '';
  let now: ShownIn = { state: 'waiting', terminatedId: '' };
  let last = now;
  const fields = new MessageFields(bytes);
  while (fields.next()) {
    if (fields.tag === CONTAINER_NAME) container = name(fields.body);
    if (fields.tag === CONTAINER_STATE) now = readState(fields.body);
    if (fields.tag === CONTAINER_LAST_STATE) last = readState(fields.body);
    if (fields.tag === CONTAINER_ID) id = containerId(fields.body);
  }
  const ended = [now.terminatedId, last.terminatedId].map(
    (each): KubeletContainer => ({ id: each, name: container, state: 'terminated' }),
  );
  return [...ended, { id, name: container, state: now.state }];
}

function readState(bytes: Buffer): ShownIn {
  let isRunning = false;
  let terminatedId: string | null = null;
  const fields = new MessageFields(bytes);
  while (fields.next()) {
    if (fields.tag === STATE_RUNNING) isRunning = true;
    if (fields.tag === STATE_TERMINATED) terminatedId = terminatedIdOf(fields.body);
  }
  if (terminatedId !== null) return { state: 'terminated', terminatedId };
  return { state: isRunning ? 'running' : 'waiting', terminatedId: '' };
}

function terminatedIdOf(bytes: Buffer): string {
  let id = '';
  const fields = new MessageFields(bytes);
  while (fields.next()) if (fields.tag === TERMINATED_ID) id = containerId(fields.body);
  return id;
}

/** The id without its scheme; empty if it is too long to be one. */
function containerId(bytes: Buffer): string {
  if (bytes.length > MAX_SCHEME_LENGTH + MAX_ID_LENGTH) return '';
  const text = bytes.toString('utf8');
  const scheme = text.indexOf('://');
  return scheme === -1 ? text : text.slice(scheme + '://'.length);
}

/** A character has at most four bytes. */
const name = (bytes: Buffer): string =>
  cleanText(bytes.toString('utf8', 0, 4 * MAX_NAME_LENGTH), MAX_NAME_LENGTH);
