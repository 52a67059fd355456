/*
 * The verbs of the Kubernetes API that the controller needs.
 *
 *   page        one response to a list; `continue` requests the next one, and expires after about five minutes (410)
 *   bookmark    a watch event without an object: every change up to its resourceVersion has been sent
 *   apply       server-side apply: takes over the fields that we send, whoever owned them, unless the manager says otherwise
 *
 * Every verb throws KUBE_UNREACHABLE, KUBE_REFUSED or KUBE_CONFIG, and KubeStatusError for any other response.
 */
import * as v from 'valibot';
import { type ApiConnection, loadCredentials } from './credentials.ts';
import {
  errorOfResponse,
  type KubeOperation,
  KubeStatusError,
  parseStatus,
  unreachable,
} from './kubeErrors.ts';
import {
  ACCESS_REVIEWS,
  decode,
  KubeListSchema,
  type KubeObject,
  KubeObjectSchema,
  pathOf,
  type Resource,
  resourceName,
  TOKEN_REVIEWS,
  WatchEventSchema,
} from './object.ts';
import type { KubeRight } from './rights.ts';
import {
  jsonLines,
  type KubeHttpRequest,
  type KubeHttpResponse,
  openStream,
  sendRequest,
} from './transport.ts';

/** In whose name fields are applied. */
export interface FieldManager {
  readonly name: string;
  /** Whether it takes over fields of others. Otherwise KubeStatusError 409 is thrown if another manager set one to another value. */
  readonly takesOver: boolean;
}

const CONTROLLER: FieldManager = { name: 'plegwatch-controller', takesOver: true };

const TIMEOUT_MS = 10_000;
/** etcd stores objects of at most 1.5 MiB by default; as JSON they can be somewhat larger. */
const MAX_OBJECT_BYTES = 4 * 1024 * 1024;
/** Lists are read from etcd and may wait in the server's queue. */
const LIST_TIMEOUT_MS = 60_000;
/** Bookmarks arrive about once a minute, so a watch without any data for this long is broken. */
const STREAM_IDLE_MS = 150_000;

export interface KubeOptions {
  /** Path of a kubeconfig. Default: the service account of the pod. */
  readonly kubeconfig?: string | undefined;
}

interface ListOptions {
  readonly limit?: number;
  readonly continue?: string;
  /** The list as of exactly this version. Throws KubeStatusError 410 if that is too old. Default: the present one. */
  readonly atVersion?: string | undefined;
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
  applyStatus(
    resource: Resource,
    object: AppliedObject,
    signal?: AbortSignal,
    manager?: FieldManager,
  ): Promise<KubeObject>;
  /** False if the object does not exist, or has another UID than this. */
  delete(resource: Resource, name: string, uid?: string, signal?: AbortSignal): Promise<boolean>;
  /** Whether RBAC lets us do this, in every namespace unless the resource has one. */
  may(right: KubeRight): Promise<boolean>;
  /** The server's review of a token of its own, for one of these audiences. */
  reviewToken(token: string, audiences: readonly string[], signal?: AbortSignal): Promise<TokenStatus>;
  /** Whether RBAC lets this user do this, in every namespace unless the resource has one. */
  mayUser(user: KubeUser, right: KubeRight): Promise<boolean>;
  /** Ends when the server ends the watch. Throws KubeStatusError 410 if the version is too old. */
  watch(resource: Resource, options: WatchOptions): AsyncGenerator<WatchEvent>;
  close(): void;
}

const SELF_ACCESS_REVIEWS: Resource = { ...ACCESS_REVIEWS, plural: 'selfsubjectaccessreviews' };
const AccessReviewSchema = v.looseObject({ status: v.looseObject({ allowed: v.boolean() }) });

const TokenReviewSchema = v.looseObject({
  status: v.looseObject({
    authenticated: v.optional(v.boolean(), false),
    audiences: v.optional(v.array(v.string()), []),
    error: v.optional(v.string(), ''),
    user: v.optional(
      v.looseObject({
        username: v.optional(v.string(), ''),
        uid: v.optional(v.string(), ''),
        groups: v.optional(v.array(v.string()), []),
        extra: v.optional(v.record(v.string(), v.array(v.string())), {}),
      }),
      {},
    ),
  }),
});

/** As a TokenReview names one. */
export interface KubeUser {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

interface TokenStatus extends KubeUser {
  readonly authenticated: boolean;
  /** Those of the audiences asked for that the token is for; without any asked for, it is for the server itself. */
  readonly audiences: readonly string[];
  readonly error: string;
}

const PAGE = 500;

/** Every page of a list, at one version. If a page expires, the caller starts again. */
export async function* pagesOf(
  kube: Pick<KubeClient, 'list'>,
  resource: Resource,
  { atVersion, ...options }: Pick<ListOptions, 'metadataOnly' | 'signal' | 'atVersion'>,
): AsyncGenerator<Page> {
  let page = await kube.list(resource, { ...options, limit: PAGE, atVersion });
  yield page;
  while (page.continue !== '') {
    page = await kube.list(resource, { ...options, limit: PAGE, continue: page.continue });
    yield page;
  }
}

/** Reads the credentials, and sends nothing yet. Throws KUBE_CONFIG. */
export async function createKubeClient({ kubeconfig }: KubeOptions): Promise<KubeClient> {
  const credentials = await loadCredentials(kubeconfig);

  /** A request that is answered with 401 is repeated once, with credentials read again. */
  async function authenticated<T extends { readonly status: number }>(
    attempt: (connection: ApiConnection) => Promise<T>,
  ): Promise<T> {
    const response = await attempt(await credentials.connection());
    if (response.status !== 401) return response;
    credentials.expire();
    return attempt(await credentials.connection());
  }

  async function send<S extends v.GenericSchema>(
    operation: KubeOperation,
    request: KubeHttpRequest,
    schema: S,
  ): Promise<v.InferOutput<S>> {
    const response = await authenticated((connection) => sendRequest(connection, request));
    if (response.status < 200 || response.status > 299) throw errorOfResponse(operation, response);
    return decode(schema, operation, parseJson(operation, response));
  }

  async function patch(
    resource: Resource,
    object: AppliedObject,
    subresource: string,
    {
      signal,
      manager = CONTROLLER,
    }: { signal?: AbortSignal | undefined; manager?: FieldManager | undefined },
  ): Promise<KubeObject> {
    const { name } = object.metadata;
    const operation = { verb: 'patch', resource: resourceName(resource, subresource), name };
    const query = queryOf({ fieldManager: manager.name, force: manager.takesOver });
    const request: KubeHttpRequest = {
      method: 'PATCH',
      path: `${pathOf(resource, name, subresource)}${query}`,
      headers: { accept: JSON_TYPE, 'content-type': 'application/apply-patch+yaml' },
      body: JSON.stringify(object),
      timeoutMs: TIMEOUT_MS,
      signal,
    };
    return send(operation, request, KubeObjectSchema);
  }

  /** Asks for a review, an object that is answered and not stored. */
  async function post<S extends v.GenericSchema>(
    { kind, resource, spec, signal }: Review,
    schema: S,
  ): Promise<v.InferOutput<S>> {
    const request: KubeHttpRequest = {
      method: 'POST',
      path: pathOf(resource),
      headers: { accept: JSON_TYPE, 'content-type': JSON_TYPE },
      body: JSON.stringify({ apiVersion: `${resource.group}/${resource.version}`, kind, spec }),
      timeoutMs: TIMEOUT_MS,
      signal,
    };
    return send({ verb: 'create', resource: resourceName(resource) }, request, schema);
  }

  return {
    async get(resource, name, signal) {
      const operation = { verb: 'get', resource: resourceName(resource), name };
      const path = pathOf(resource, name);
      const limits = { maxBytes: MAX_OBJECT_BYTES, timeoutMs: TIMEOUT_MS, signal };
      try {
        return await send(
          operation,
          { method: 'GET', path, headers: ACCEPT_JSON, ...limits },
          KubeObjectSchema,
        );
      } catch (error) {
        if (error instanceof KubeStatusError && error.code === 404) return undefined;
        throw error;
      }
    },

    async list(resource, { limit, continue: next, atVersion, metadataOnly = false, signal } = {}) {
      const operation = { verb: 'list', resource: resourceName(resource) };
      const exactly =
        atVersion === undefined ? {} : { resourceVersion: atVersion, resourceVersionMatch: 'Exact' };
      const request: KubeHttpRequest = {
        method: 'GET',
        path: `${pathOf(resource)}${queryOf({ limit, continue: next, ...exactly })}`,
        headers: { accept: metadataOnly ? METADATA_LIST : JSON_TYPE },
        timeoutMs: LIST_TIMEOUT_MS,
        signal,
      };
      const { items, metadata } = await send(operation, request, KubeListSchema);
      return { items: items ?? [], ...metadata };
    },

    apply: (resource, object, signal) => patch(resource, object, '', { signal }),
    applyStatus: (resource, object, signal, manager) =>
      patch(resource, object, 'status', { signal, manager }),

    async delete(resource, name, uid, signal) {
      const operation = { verb: 'delete', resource: resourceName(resource), name };
      const preconditions = uid === undefined ? {} : { preconditions: { uid } };
      const request: KubeHttpRequest = {
        method: 'DELETE',
        path: pathOf(resource, name),
        headers: { accept: JSON_TYPE, 'content-type': JSON_TYPE },
        body: JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', ...preconditions }),
        timeoutMs: TIMEOUT_MS,
        signal,
      };
      try {
        await send(operation, request, v.unknown());
        return true;
      } catch (error) {
        if (error instanceof KubeStatusError && (error.code === 404 || error.code === 409)) return false;
        throw error;
      }
    },

    async may(right) {
      const spec = { resourceAttributes: attributesOf(right) };
      const review = { kind: 'SelfSubjectAccessReview', resource: SELF_ACCESS_REVIEWS, spec };
      return (await post(review, AccessReviewSchema)).status.allowed;
    },

    async mayUser({ username: user, uid, groups, extra }, right) {
      const spec = { user, uid, groups, extra, resourceAttributes: attributesOf(right) };
      const review = { kind: 'SubjectAccessReview', resource: ACCESS_REVIEWS, spec };
      return (await post(review, AccessReviewSchema)).status.allowed;
    },

    async reviewToken(token, audiences, signal) {
      const review = { kind: 'TokenReview', resource: TOKEN_REVIEWS, spec: { token, audiences }, signal };
      const { authenticated, user, ...status } = (await post(review, TokenReviewSchema)).status;
      return { authenticated, ...user, audiences: status.audiences, error: status.error };
    },

    async *watch(resource, { resourceVersion, timeoutSeconds, onOpen, signal }) {
      const operation = { verb: 'watch', resource: resourceName(resource) };
      const query = queryOf({ watch: true, allowWatchBookmarks: true, resourceVersion, timeoutSeconds });
      const path = `${pathOf(resource)}${query}`;
      const request: KubeHttpRequest = {
        method: 'GET',
        path,
        headers: ACCEPT_JSON,
        timeoutMs: TIMEOUT_MS,
        signal,
      };
      // Nothing is awaited between the open stream and the block that closes it.
      const opened = await authenticated(async (connection) => ({
        ...(await openStream(connection, request, STREAM_IDLE_MS)),
        server: connection.server,
      }));
      if (!('stream' in opened)) throw errorOfResponse(operation, opened);
      try {
        onOpen?.();
        for await (const event of jsonLines(opened.stream)) yield watchEvent(operation, event);
      } catch (error) {
        signal?.throwIfAborted();
        throw error instanceof KubeStatusError || !(error instanceof Error) || 'cure' in error
          ? error
          : unreachable(opened.server, error);
      } finally {
        opened.stream.destroy();
      }
    },

    close: () => credentials.close(),
  };
}

interface Review {
  readonly kind: string;
  readonly resource: Resource;
  readonly spec: object;
  readonly signal?: AbortSignal | undefined;
}

function attributesOf({
  verb,
  resource: { group, version, plural, namespace },
  subresource = '',
  name,
}: KubeRight) {
  return { verb, group, version, resource: plural, subresource, namespace, name };
}

const JSON_TYPE = 'application/json';
const ACCEPT_JSON = { accept: JSON_TYPE };
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

function parseJson(operation: KubeOperation, { status, body }: KubeHttpResponse): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw errorOfResponse(operation, { status, body: `not JSON: ${body.slice(0, 200)}`, headers: {} });
  }
}
