/*
 * `plegwatch mcp`: a server of the Model Context Protocol on standard input and output, for programs that ask plegwatch what it stored.
 *
 * It reads Postgres in transactions that can write nothing. Postgres is first connected to when a tool is called: while it is away, calls are
 * answered with what is wrong. Standard output belongs to the protocol. The server ends when standard input does.
 */
import { type CallToolResult, McpServer, type StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { errorFields, PlegwatchError } from '../platform/errors.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { withoutSecrets } from '../platform/settings.ts';
import { aborted } from '../platform/stopSignal.ts';
import { VERSION } from '../platform/version.ts';
import { explainDatabaseError, isOfDatabase } from '../store/databaseError.ts';
import { openReadStore } from '../store/fleet.ts';
import type { OpenStore, ReadStore } from '../store/store.ts';
import { createReader, type ReaderUntil, readStoreOf } from '../ui/answers/reader.ts';
import { RequestError } from '../ui/requestError.ts';
import { boundedAnswer, boundedError, type Refusal, UNTRUSTED } from './answer.ts';
import { schemaOf } from './arguments.ts';
import { BEFORE_READING } from './questions.ts';
import { MCP_SETTINGS, type McpConfig } from './settings.ts';
import { TOOLS, type Tool } from './tools.ts';

const ANSWERED_WITHIN_MS = 30_000;

/** Runs until standard input ends or the signal is aborted. */
export async function runMcp(config: McpConfig, signal: AbortSignal): Promise<void> {
  const log = createLogger(config.logLevel, 'mcp');
  log.info({ version: VERSION, settings: withoutSecrets(config, MCP_SETTINGS) }, 'mcp starting');
  const database = databaseOf(config, log);
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
  const served = serveStdio(() => serverOf(config, database, log), { transport: new Transport(), onerror });
  await aborted(AbortSignal.any([signal, closed.signal]));
  await served.close();
  await database.close();
}

function serverOf(config: McpConfig, database: Database, log: Logger): McpServer {
  const instructions = `plegwatch records which container events kubelets missed, and where the evidence is incomplete. ${UNTRUSTED}\n\n${BEFORE_READING}`;
  const server = new McpServer({ name: 'plegwatch', version: VERSION }, { instructions });
  for (const [name, tool] of Object.entries(TOOLS)) {
    const description = {
      description: tool.description,
      inputSchema: inputOf(tool),
      annotations: { readOnlyHint: true, openWorldHint: false },
    };
    server.registerTool(name, description, async (given, { mcpReq }) => {
      const deadline = AbortSignal.timeout(ANSWERED_WITHIN_MS);
      try {
        const read = tool.asked(given);
        const store = await database.read(AbortSignal.any([mcpReq.signal, deadline]));
        return resultOf(boundedAnswer(await read(store), tool.less));
      } catch (error) {
        // Nobody waits for the answer.
        if (mcpReq.signal.aborted) throw error;
        const refused = explainedError(error, deadline, config, tool);
        if (refused === undefined) log.error({ err: error, tool: name }, 'tool call failed');
        return { ...resultOf(boundedError(refused ?? DEFECT)), isError: true };
      }
    });
  }
  return server;
}

/** The arguments are read by the tool, whose errors say what is wrong with all of them. */
function inputOf(tool: Tool): StandardSchemaWithJSON<object> {
  const schema = () => schemaOf(tool.arguments);
  return {
    '~standard': {
      ...{ version: 1, vendor: 'plegwatch' },
      validate: (value: unknown) => ({ value: Object(value) }),
      jsonSchema: { input: schema, output: schema },
    },
  };
}

const resultOf = (answer: Record<string, unknown>): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(answer) }],
  structuredContent: answer,
});

const DEFECT = {
  code: 'INTERNAL',
  message: 'The answer could not be made.',
  cure: 'Report it with the line on standard error of plegwatch mcp.',
} as const;

/** An error as the client is told it; undefined for a defect. */
function explainedError(
  error: unknown,
  deadline: AbortSignal,
  config: McpConfig,
  { less, arguments: table }: Tool,
): Refusal | undefined {
  if (error instanceof RequestError) return error;
  if (deadline.aborted && error === deadline.reason) {
    const message = `The answer took longer than ${ANSWERED_WITHIN_MS / 1000} s.`;
    return new PlegwatchError('DATABASE_TIMEOUT', message, `Ask for less: ${less}.`);
  }
  if (!(error instanceof PlegwatchError))
    return isOfDatabase(error) ? explainDatabaseError(config, error, less) : undefined;
  if (error.code !== 'SETTING_INVALID') return error;
  // Errors name an argument as the flag of the command. The flags of this command stay what they are.
  const named = (text: string) =>
    text.replaceAll(/--([a-z]+)(?![\w-])/g, (flag, name: string) => (name in table ? name : flag));
  return { code: error.code, message: named(error.message), cure: named(error.cure) };
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
