/*
 * The server of the Model Context Protocol: its tools, whichever way a client reaches it.
 */
import { type CallToolResult, McpServer, type StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import { PlegwatchError } from '../platform/errors.ts';
import { VERSION } from '../platform/version.ts';
import type { ReadStore } from '../store/store.ts';
import { RequestError } from '../ui/requestError.ts';
import { boundedAnswer, boundedError, type Refusal, UNTRUSTED } from './answer.ts';
import { schemaOf } from './arguments.ts';
import { BEFORE_READING } from './questions.ts';
import { TOOLS, type Tool } from './tools.ts';

const ANSWERED_WITHIN_MS = 30_000;

/** Where answers come from. */
export interface AnswerSource {
  /** Its log has what clients are not told. */
  readonly program: 'mcp' | 'ui';
  readonly log: { error(fields: object, message: string): void };
  /** For one call, until the signal. Throws what the client is told. */
  readonly read: (signal: AbortSignal) => Promise<ReadStore>;
  /** An error of the database as the client is told it; undefined for another one. `less`: how to ask for less. */
  readonly explain: (error: unknown, less: string) => Refusal | undefined;
}

/** A server for one client, or one request. */
export function serverOf(source: AnswerSource): McpServer {
  const instructions = `plegwatch records which container events were not delivered to its agents, what each kubelet knew, and where the evidence is incomplete. ${UNTRUSTED}\n\n${BEFORE_READING}`;
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
        const store = await source.read(AbortSignal.any([mcpReq.signal, deadline]));
        return resultOf(boundedAnswer(await read(store), tool.less));
      } catch (error) {
        // Nobody waits for the answer.
        if (mcpReq.signal.aborted) throw error;
        const refused = explainedError(error, deadline, source, tool);
        if (refused === undefined) source.log.error({ err: error, tool: name }, 'tool call failed');
        return { ...resultOf(boundedError(refused ?? defectIn(source))), isError: true };
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

const defectIn = ({ program }: AnswerSource): Refusal => ({
  code: 'INTERNAL',
  message: 'The answer could not be made.',
  cure: `Report it with the line in the log of plegwatch ${program}.`,
});

/** An error as the client is told it; undefined for a defect. */
function explainedError(
  error: unknown,
  deadline: AbortSignal,
  { explain }: AnswerSource,
  { less, arguments: table }: Tool,
): Refusal | undefined {
  if (error instanceof RequestError) return error;
  if (deadline.aborted && error === deadline.reason) {
    const message = `The answer took longer than ${ANSWERED_WITHIN_MS / 1000} s.`;
    return new PlegwatchError('DATABASE_TIMEOUT', message, `Ask for less: ${less}.`);
  }
  if (!(error instanceof PlegwatchError)) return explain(error, less);
  if (error.code !== 'SETTING_INVALID') return error;
  // Errors name an argument as the flag of the command. The flags of this command stay what they are.
  const named = (text: string) =>
    text.replaceAll(/--([a-z]+)(?![\w-])/g, (flag, name: string) => (name in table ? name : flag));
  return { code: error.code, message: named(error.message), cure: named(error.cure) };
}
