/*
 * Requests to the API server with our credentials. A request that is answered with 401 is repeated once, with credentials read again.
 */
import { type ApiConnection, loadCredentials } from './credentials.ts';
import { jsonLines } from './jsonLines.ts';
import { errorOfResponse, type KubeOperation, KubeStatusError, unreachable } from './kubeErrors.ts';
import { type KubeHttpRequest, openStream, readBody, sendRequest } from './transport.ts';

/** Bookmarks arrive about once a minute, so a watch without any data for this long is broken. */
const STREAM_IDLE_MS = 150_000;

export interface ApiSession {
  /** Returns the body of a successful response, parsed. */
  send(operation: KubeOperation, request: KubeHttpRequest): Promise<unknown>;
  /** Yields the JSON values of a streamed response, and ends with it. `onOpen` is called when the server has accepted the request. */
  stream(operation: KubeOperation, request: KubeHttpRequest, onOpen?: () => void): AsyncGenerator<unknown>;
  close(): void;
}

/** Reads the credentials, and sends nothing yet. Throws KUBE_CONFIG. */
export async function openSession(kubeconfig: string | undefined): Promise<ApiSession> {
  const credentials = await loadCredentials(kubeconfig);

  async function authenticated<T extends { status: number }>(
    attempt: (connection: ApiConnection) => Promise<T>,
  ): Promise<T> {
    const response = await attempt(await credentials.connection());
    if (response.status !== 401) return response;
    credentials.expire();
    return attempt(await credentials.connection());
  }

  return {
    async send(operation, request) {
      const response = await authenticated((connection) => sendRequest(connection, request));
      const { status, body, headers } = response;
      if (status < 200 || status > 299) {
        throw errorOfResponse(operation, status, body, headers['retry-after']);
      }
      try {
        return JSON.parse(body);
      } catch {
        throw errorOfResponse(operation, status, `not JSON: ${body.slice(0, 200)}`, undefined);
      }
    },

    async *stream(operation, request, onOpen) {
      const { response, status } = await authenticated(async (connection) => {
        const opened = await openStream(connection, request, STREAM_IDLE_MS);
        return { response: opened, status: opened.statusCode ?? 0 };
      });
      const { server } = await credentials.connection();
      try {
        if (status !== 200) {
          const body = await readBody(response);
          throw errorOfResponse(operation, status, body, response.headers['retry-after']);
        }
        onOpen?.();
        yield* jsonLines(response);
      } catch (error) {
        request.signal?.throwIfAborted();
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
