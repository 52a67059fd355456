/*
 * An agent, a controller or the page as a local service: the built program in a process, with its settings as environment
 * variables and its HTTP server on a free port.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import type { AGENT_SETTINGS } from '../../src/agent/config.ts';
import { NODE_FLAGS } from '../../src/agent/observe/stream/readerProcess.ts';
import type { CONTROLLER_SETTINGS } from '../../src/controller/config.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { variableOf } from '../../src/platform/settings.ts';
import type { UI_SETTINGS } from '../../src/ui/settings.ts';
import { type LocalService, startService } from './localService.ts';
import { freePort, type RunningProcess, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';

/** Settings by their names in the tables: `redisUrl`, not `--redis-url`. A name that no table has does not compile. */
export type PlegwatchSettings = Readonly<
  Partial<Record<keyof (typeof AGENT_SETTINGS & typeof CONTROLLER_SETTINGS & typeof UI_SETTINGS), string>>
>;

export interface PlegwatchOptions {
  /** The built command line, dist/cli.js. */
  readonly cli: string;
  readonly command: 'agent' | 'controller' | 'ui';
  readonly settings: PlegwatchSettings;
  /** More arguments for Node. */
  readonly nodeArgs?: readonly string[];
}

export interface LocalPlegwatch extends LocalService {
  readonly port: number;
  /** Its log since the first start. */
  log(): string;
  /** The response of `/readyz`, `/livez` or `/metrics`; null where there is none. */
  ask(path: '/readyz' | '/livez' | '/metrics'): Promise<{ status: number; body: string } | null>;
}

/** A program gets no settings from our environment, but the code that Node keeps compiled (make test): compiling takes a third of its start. */
export const programEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
});

/** Starts a program; returns when its HTTP server responds. Throws PROGRAM_FAILED with the end of its log. */
export async function startPlegwatch({
  cli,
  command,
  settings,
  nodeArgs = [],
}: PlegwatchOptions): Promise<LocalPlegwatch> {
  const port = await freePort();
  const place = temporaryFolder(command, undefined);
  const logFile = join(place.dir, `${command}.log`);
  const all = { httpAddress: `127.0.0.1:${port}`, ...settings };
  const env = Object.fromEntries(Object.entries(all).map(([key, value]) => [variableOf(key), value]));
  const start = () =>
    startProcess({
      name: command,
      command: process.execPath,
      args: [...(command === 'agent' ? NODE_FLAGS : []), ...nodeArgs, cli, command],
      env: { ...programEnvironment(), ...env },
      logFile,
      ready: async () => (await ask(port, '/livez'))?.status === 200,
    });
  const service = await startService(
    () => supervised(start),
    async () => place.remove(),
  );
  return Object.assign(service, {
    port,
    log: () => readFileSync(logFile, 'utf8'),
    ask: (path: string) => ask(port, path),
  });
}

const TIMED_OUT = /ended before it was ready.*(timed out|timeout|DEADLINE_EXCEEDED)/s;
const STARTS_WITHIN_MS = 240_000;

/** A program ends if a service does not answer its first calls in time, as on a busy machine; Kubernetes would start it again. */
async function supervised(start: () => Promise<RunningProcess>): Promise<RunningProcess> {
  const deadline = performance.now() + STARTS_WITHIN_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (performance.now() > deadline || !TIMED_OUT.test(messageOf(error))) throw error;
    }
  }
}

function ask(port: number, path: string): Promise<{ status: number; body: string } | null> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, timeout: 10_000 }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}
