/*
 * How a call ends that the runtime cancels, with a clock that the test moves. The runtime is a server of HTTP/2 that does nothing else.
 */
import { once } from 'node:events';
import { constants, createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { CriClient } from './client.ts';

const TIMEOUT_MS = 3_600_000;

let folder: TemporaryFolder;
let runtime: Http2Server;
let client: CriClient;
const sessions: ServerHttp2Session[] = [];
/** How long the runtime waits until it cancels the call. */
let cancelsAfterMs = 0;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  folder = temporaryFolder('client', undefined);
  const socket = join(folder.dir, 'cri.sock');
  runtime = createServer();
  runtime.on('session', (session) => sessions.push(session));
  runtime.on('stream', (stream) => {
    vi.setSystemTime(Date.now() + cancelsAfterMs);
    stream.close(constants.NGHTTP2_CANCEL);
  });
  runtime.listen(socket);
  await once(runtime, 'listening');
  client = new CriClient(socket);
});
afterEach(() => {
  client.close();
  for (const session of sessions.splice(0)) session.destroy();
  runtime.close();
  folder.remove();
  vi.useRealTimers();
});

const CALLS = {
  'an answer in one message': () => client.listContainers({ timeoutMs: TIMEOUT_MS }),
  'an answer in batches': () => client.streamContainers({ timeoutMs: TIMEOUT_MS }, () => undefined),
};

test.each(Object.entries(CALLS))(
  'a call for %s that the runtime cancels at its deadline has passed it, and one that it cancels before was cancelled',
  async (_, call) => {
    cancelsAfterMs = TIMEOUT_MS;
    await expect(call()).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    cancelsAfterMs = TIMEOUT_MS / 2;
    await expect(call()).rejects.toMatchObject({ code: 'CANCELLED' });
  },
);
