/*
 * The few verbs the controller needs of the Kubernetes API.
 *
 *   page        one answer to a list; `continue` asks for the next, and expires after about five minutes (410)
 *   bookmark    a watch event without an object: everything up to its resourceVersion has been told
 *   apply       server-side apply: the fields we send are ours, whoever held them before
 *
 * Every verb throws KUBE_UNREACHABLE, KUBE_REFUSED or KUBE_CONFIG, and {@link KubeStatusError} for any other answer.
 */
import * as v from 'valibot';
import { type Connection, loadCredentials } from './credentials.ts';
import { type Asked, KubeStatusError, refusal, statusOf, unreachable } from './failure.ts';
import { jsonLines } from './lines.ts';
import {
  KubeListSchema,
  type KubeObject,
  KubeObjectSchema,
  pathOf,
  type Resource,
  resourceName,
  WatchEventSchema,
} from './object.ts';
import { type Exchange, exchange, openStream, readAll } from './transport.ts';

const FIELD_MANAGER = 'plegwatch-controller';

const TIMEOUT_MS = 10_000;
/** etcd takes no object over 1.5 MiB unless it is told to; as JSON one may be somewhat larger. */
const MAX_OBJECT_BYTES = 4 * 1024 * 1024;
/** Lists are answered from etcd and may wait in the server's queue. */
const LIST_TIMEOUT_MS = 60_000;
/** Bookmarks come about once a minute: a watch that is quiet for longer than this is broken. */
const WATCH_IDLE_MS = 150_000;

export interface KubeOptions {
  /** Path of a kubeconfig; without it the service account of the pod. */
  readonly kubeconfig?: string | undefined;
}

interface ListOptions {
  readonly limit?: number;
  readonly continue?: string;
  /** Ask for names, UIDs and owners only. */
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
  /** Events after this one are told; from a list, an event or a bookmark. */
  readonly resourceVersion: string;
  /** The server ends the watch after this long. */
  readonly timeoutSeconds: number;
  readonly metadataOnly?: boolean;
  /** Told when the server has taken the watch; where nothing changes, minutes pass before the first event. */
  readonly onOpen?: () => void;
  readonly signal?: AbortSignal;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

/** An object as we apply it: it names itself. */
export interface Applied {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface KubeClient {
  /** A consistent read. Undefined where there is no such object. */
  get(resource: Resource, name: string, signal?: AbortSignal): Promise<KubeObject | undefined>;
  list(resource: Resource, options?: ListOptions): Promise<Page>;
  apply(resource: Resource, object: Applied, signal?: AbortSignal): Promise<KubeObject>;
  applyStatus(resource: Resource, object: Applied, signal?: AbortSignal): Promise<KubeObject>;
  /** False where it was gone already, or is another object than the one with this UID. */
  delete(resource: Resource, name: string, uid?: string, signal?: AbortSignal): Promise<boolean>;
  /** Ends when the server ends the watch; throws KubeStatusError 410 when the version is too old. */
  watch(resource: Resource, options: WatchOptions): AsyncGenerator<WatchEvent>;
  close(): void;
}

/** Reads the credentials; asks nothing of the server yet. Throws KUBE_CONFIG. */
export async function createKubeClient(options: KubeOptions): Promise<KubeClient> {
  const credentials = await loadCredentials(options.kubeconfig);

  /** Asks once, and once more with credentials read anew where they are not accepted. */
  async function renewing<T extends { status: number }>(ask: (c: Connection) => Promise<T>): Promise<T> {
    const answer = await ask(await credentials.connection());
    if (answer.status !== 401) return answer;
    credentials.expire();
    return ask(await credentials.connection());
  }

  async function send(asked: Asked, request: Exchange): Promise<unknown> {
    const answer = await renewing((connection) => exchange(connection, request));
    if (answer.status < 200 || answer.status > 299) {
      throw refusal(asked, answer.status, answer.body, answer.headers['retry-after']);
    }
    return parseBody(asked, answer.status, answer.body);
  }

  async function patch(resource: Resource, object: Applied, subresource: string, signal?: AbortSignal) {
    const { name } = object.metadata;
    const asked = { verb: 'patch', resource: resourceName(resource, subresource), name };
    const answer = await send(asked, {
      method: 'PATCH',
      path: `${pathOf(resource, name, subresource)}?fieldManager=${FIELD_MANAGER}&force=true`,
      headers: { accept: 'application/json', 'content-type': 'application/apply-patch+yaml' },
      body: JSON.stringify(object),
      ...common(TIMEOUT_MS, signal),
    });
    return checked(KubeObjectSchema, asked, answer);
  }

  return {
    async get(resource, name, signal) {
      const asked = { verb: 'get', resource: resourceName(resource), name };
      try {
        const answer = await send(asked, {
          method: 'GET',
          path: pathOf(resource, name),
          headers: { accept: 'application/json' },
          maxBytes: MAX_OBJECT_BYTES,
          ...common(TIMEOUT_MS, signal),
        });
        return checked(KubeObjectSchema, asked, answer);
      } catch (error) {
        if (error instanceof KubeStatusError && error.code === 404) return undefined;
        throw error;
      }
    },

    async list(resource, { limit, continue: next, metadataOnly = false, signal } = {}) {
      const asked = { verb: 'list', resource: resourceName(resource) };
      const query = queryOf({ limit, continue: next });
      const answer = await send(asked, {
        method: 'GET',
        path: `${pathOf(resource)}${query}`,
        headers: { accept: metadataOnly ? partial('PartialObjectMetadataList') : 'application/json' },
        ...common(LIST_TIMEOUT_MS, signal),
      });
      const list = checked(KubeListSchema, asked, answer);
      return {
        items: list.items ?? [],
        resourceVersion: list.metadata.resourceVersion,
        continue: list.metadata.continue,
      };
    },

    apply: (resource, object, signal) => patch(resource, object, '', signal),
    applyStatus: (resource, object, signal) => patch(resource, object, 'status', signal),

    async delete(resource, name, uid, signal) {
      const asked = { verb: 'delete', resource: resourceName(resource), name };
      try {
        await send(asked, {
          method: 'DELETE',
          path: pathOf(resource, name),
          headers: { accept: 'application/json', 'content-type': 'application/json' },
          body: JSON.stringify({
            apiVersion: 'v1',
            kind: 'DeleteOptions',
            ...(uid === undefined ? {} : { preconditions: { uid } }),
          }),
          ...common(TIMEOUT_MS, signal),
        });
        return true;
      } catch (error) {
        if (error instanceof KubeStatusError && (error.code === 404 || error.code === 409)) return false;
        throw error;
      }
    },

    async *watch(resource, { resourceVersion, timeoutSeconds, metadataOnly = false, onOpen, signal }) {
      const asked = { verb: 'watch', resource: resourceName(resource) };
      const query = queryOf({ watch: true, allowWatchBookmarks: true, resourceVersion, timeoutSeconds });
      const request: Exchange = {
        method: 'GET',
        path: `${pathOf(resource)}${query}`,
        headers: { accept: metadataOnly ? partial('PartialObjectMetadata') : 'application/json' },
        ...common(TIMEOUT_MS, signal),
      };
      const { response, status } = await renewing(async (connection) => {
        const opened = await openStream(connection, request, WATCH_IDLE_MS);
        return { response: opened, status: opened.statusCode ?? 0 };
      });
      const { server } = await credentials.connection();
      try {
        if (status !== 200) {
          throw refusal(asked, status, await readAll(response), response.headers['retry-after']);
        }
        onOpen?.();
        for await (const line of jsonLines(response)) yield watchEvent(asked, line);
      } catch (error) {
        signal?.throwIfAborted();
        throw error instanceof KubeStatusError || !(error instanceof Error) || 'cure' in error
          ? error
          : unreachable(server, error);
      } finally {
        response.destroy();
      }
    },

    close: () => credentials.close(),
  };
}

function common(timeoutMs: number, signal: AbortSignal | undefined) {
  return signal === undefined ? { timeoutMs } : { timeoutMs, signal };
}

const partial = (kind: string): string => `application/json;as=${kind};g=meta.k8s.io;v=v1`;

function queryOf(values: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}

function parseBody(asked: Asked, status: number, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw refusal(asked, status, `not JSON: ${body.slice(0, 200)}`, undefined);
  }
}

function checked<S extends v.GenericSchema>(schema: S, asked: Asked, input: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  throw new KubeStatusError(
    200,
    'Unreadable',
    `${asked.verb} ${asked.resource}: ${result.issues[0].message}`,
  );
}

function watchEvent(asked: Asked, line: unknown): WatchEvent {
  const { type, object } = checked(WatchEventSchema, asked, line);
  if (type === 'ERROR') {
    const { code, reason, message } = statusOf(JSON.stringify(object));
    throw new KubeStatusError(code, reason, `${asked.verb} ${asked.resource}: ${message}`);
  }
  return { type, object: checked(KubeObjectSchema, asked, object) };
}
