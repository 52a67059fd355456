/*
 * `plegwatch mcp`: a server of the Model Context Protocol on standard input and output, for programs that ask plegwatch what it stored.
 *
 * It reads Postgres in transactions that can write nothing. Postgres is first connected to when a tool is called: while it is away, calls are
 * answered with what is wrong. Standard output belongs to the protocol. The server ends when standard input does.
 */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { errorFields } from '../platform/errors.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { VERSION } from '../platform/version.ts';
import { explainDatabaseError, isOfDatabase } from '../store/databaseError.ts';
import { openReadStore } from '../store/fleet.ts';
import type { OpenStore, ReadStore } from '../store/store.ts';
import { createReader, type ReaderUntil, readStoreOf } from '../ui/answers/reader.ts';
import { type AnswerSource, serverOf } from './server.ts';
import { MCP_SETTINGS, type McpConfig } from './settings.ts';

/** Runs until standard input ends or the signal is aborted. */
export async function runMcp(config: McpConfig, signal: AbortSignal): Promise<void> {
  const log = createLogger(config.logLevel, 'mcp');
  log.info({ version: VERSION, settings: withoutSecrets(config, MCP_SETTINGS) }, 'mcp starting');
  const database = databaseOf(config, log);
  const source: AnswerSource = {
    ...{ program: 'mcp', log, read: database.read },
    explain: (error, less) => (isOfDatabase(error) ? explainDatabaseError(config, error, less) : undefined),
  };
  const closed = new AbortController();
  class Transport extends StdioServerTransport {
    override async close(): Promise<void> {
      await super.close();
      closed.abort();
    }
  }
  const onerror = (error: Error) => log.warn(errorFields(error), 'message of the client not served');
  // Each answer that waits for the client listens there.
  process.stdout.setMaxListeners(0);
  const served = serveStdio(() => serverOf(source), { transport: new Transport(), onerror });
  await aborted(AbortSignal.any([signal, closed.signal]));
  await served.close();
  await database.close();
}

interface Database {
  /** Throws as {@link openReadStore} does. */
  readonly read: (signal: AbortSignal) => Promise<ReadStore>;
  readonly close: () => Promise<void>;
}

/** Postgres: opened by the first call that reaches it. */
function databaseOf(config: McpConfig, log: Logger): Database {
  let opening: Promise<OpenStore> | undefined;
  let reader: ReaderUntil | undefined;
  async function open(): Promise<ReaderUntil> {
    try {
      opening ??= openReadStore({ ...config, log, applicationName: 'plegwatch mcp' });
      const store = await opening;
      reader ??= createReader(store, undefined, config.databaseMaxConnections);
      return reader;
    } catch (error) {
      // The next call tries again.
      opening = undefined;
      throw error;
    }
  }
  return {
    async read(signal) {
      return readStoreOf((await open())(signal));
    },
    async close() {
      // A store that could not be opened was reported to who asked.
      const store = await opening?.catch(() => undefined);
      await store?.close();
    },
  };
}
