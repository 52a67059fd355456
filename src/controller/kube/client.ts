/*
 * The verbs of the Kubernetes API that the controller needs.
 *
 *   page        one response to a list; `continue` requests the next one, and expires after about five minutes (410)
 *   bookmark    a watch event without an object: every change up to its resourceVersion has been sent
 *   apply       server-side apply: takes over the fields that we send, whoever owned them
 *
 * Every verb throws KUBE_UNREACHABLE, KUBE_REFUSED or KUBE_CONFIG, and KubeStatusError for any other response.
 */
import { type KubeOperation, KubeStatusError, parseStatus } from './kubeErrors.ts';
import {
  decode,
  KubeListSchema,
  type KubeObject,
  KubeObjectSchema,
  pathOf,
  type Resource,
  resourceName,
  WatchEventSchema,
} from './object.ts';
import { openSession } from './session.ts';

const FIELD_MANAGER = 'plegwatch-controller';

const TIMEOUT_MS = 10_000;
/** etcd stores objects of at most 1.5 MiB by default; as JSON they can be somewhat larger. */
const MAX_OBJECT_BYTES = 4 * 1024 * 1024;
/** Lists are read from etcd and may wait in the server's queue. */
const LIST_TIMEOUT_MS = 60_000;

export interface KubeOptions {
  /** Path of a kubeconfig. Default: the service account of the pod. */
  readonly kubeconfig?: string | undefined;
}

interface ListOptions {
  readonly limit?: number;
  readonly continue?: string;
  /** Request metadata only. */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
}

interface Page {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  /** Empty on the last page. */
  readonly continue: string;
}

interface WatchOptions {
  /** The watch sends the changes after this version of a list, an event or a bookmark. */
  readonly resourceVersion: string;
  /** The server ends the watch after this time. */
  readonly timeoutSeconds: number;
  /** Called when the server has accepted the watch: the first event may be minutes away. */
  readonly onOpen?: () => void;
  readonly signal?: AbortSignal;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

/** An object to apply. */
export interface AppliedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface KubeClient {
  /** A consistent read. Undefined if the object does not exist. */
  get(resource: Resource, name: string, signal?: AbortSignal): Promise<KubeObject | undefined>;
  list(resource: Resource, options?: ListOptions): Promise<Page>;
  apply(resource: Resource, object: AppliedObject, signal?: AbortSignal): Promise<KubeObject>;
  applyStatus(resource: Resource, object: AppliedObject, signal?: AbortSignal): Promise<KubeObject>;
  /** False if the object does not exist, or has another UID than this. */
  delete(resource: Resource, name: string, uid?: string, signal?: AbortSignal): Promise<boolean>;
  /** Ends when the server ends the watch. Throws KubeStatusError 410 if the version is too old. */
  watch(resource: Resource, options: WatchOptions): AsyncGenerator<WatchEvent>;
  close(): void;
}

/** Reads the credentials, and sends nothing yet. Throws KUBE_CONFIG. */
export async function createKubeClient({ kubeconfig }: KubeOptions): Promise<KubeClient> {
  const session = await openSession(kubeconfig);

  async function patch(
    resource: Resource,
    object: AppliedObject,
    subresource: string,
    signal: AbortSignal | undefined,
  ): Promise<KubeObject> {
    const { name } = object.metadata;
    const operation = { verb: 'patch', resource: resourceName(resource, subresource), name };
    const response = await session.send(operation, {
      method: 'PATCH',
      path: `${pathOf(resource, name, subresource)}?fieldManager=${FIELD_MANAGER}&force=true`,
      headers: { accept: 'application/json', 'content-type': 'application/apply-patch+yaml' },
      body: JSON.stringify(object),
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    return decode(KubeObjectSchema, operation, response);
  }

  return {
    async get(resource, name, signal) {
      const operation = { verb: 'get', resource: resourceName(resource), name };
      try {
        const response = await session.send(operation, {
          method: 'GET',
          path: pathOf(resource, name),
          headers: { accept: 'application/json' },
          maxBytes: MAX_OBJECT_BYTES,
          timeoutMs: TIMEOUT_MS,
          signal,
        });
        return decode(KubeObjectSchema, operation, response);
      } catch (error) {
        if (error instanceof KubeStatusError && error.code === 404) return undefined;
        throw error;
      }
    },

    async list(resource, { limit, continue: next, metadataOnly = false, signal } = {}) {
      const operation = { verb: 'list', resource: resourceName(resource) };
      const response = await session.send(operation, {
        method: 'GET',
        path: `${pathOf(resource)}${queryOf({ limit, continue: next })}`,
        headers: { accept: metadataOnly ? METADATA_LIST : 'application/json' },
        timeoutMs: LIST_TIMEOUT_MS,
        signal,
      });
      const { items, metadata } = decode(KubeListSchema, operation, response);
      return {
        items: items ?? [],
        resourceVersion: metadata.resourceVersion,
        continue: metadata.continue,
      };
    },

    apply: (resource, object, signal) => patch(resource, object, '', signal),
    applyStatus: (resource, object, signal) => patch(resource, object, 'status', signal),

    async delete(resource, name, uid, signal) {
      const operation = { verb: 'delete', resource: resourceName(resource), name };
      try {
        await session.send(operation, {
          method: 'DELETE',
          path: pathOf(resource, name),
          headers: { accept: 'application/json', 'content-type': 'application/json' },
          body: JSON.stringify({
            apiVersion: 'v1',
            kind: 'DeleteOptions',
            ...(uid === undefined ? {} : { preconditions: { uid } }),
          }),
          timeoutMs: TIMEOUT_MS,
          signal,
        });
        return true;
      } catch (error) {
        if (error instanceof KubeStatusError && (error.code === 404 || error.code === 409)) return false;
        throw error;
      }
    },

    async *watch(resource, { resourceVersion, timeoutSeconds, onOpen, signal }) {
      const operation = { verb: 'watch', resource: resourceName(resource) };
      const query = queryOf({ watch: true, allowWatchBookmarks: true, resourceVersion, timeoutSeconds });
      const events = session.stream(
        operation,
        {
          method: 'GET',
          path: `${pathOf(resource)}${query}`,
          headers: { accept: 'application/json' },
          timeoutMs: TIMEOUT_MS,
          signal,
        },
        onOpen,
      );
      for await (const event of events) yield watchEvent(operation, event);
    },

    close: () => session.close(),
  };
}

const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

function queryOf(values: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}

function watchEvent(operation: KubeOperation, input: unknown): WatchEvent {
  const { type, object } = decode(WatchEventSchema, operation, input);
  if (type === 'ERROR') {
    const { code, reason, message } = parseStatus(JSON.stringify(object));
    throw new KubeStatusError(code, reason, `${operation.verb} ${operation.resource}: ${message}`);
  }
  return { type, object: decode(KubeObjectSchema, operation, object) };
}
