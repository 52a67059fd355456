/*
 * plegwatch's own program as a part: the built command line in a process of its own, with its settings as variables and
 * its HTTP side on a free port.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { variableOf } from '../../src/platform/settings.ts';
import { freePort, startProcess } from './process.ts';
import { scratch } from './scratch.ts';
import { keepService, type Service } from './service.ts';

export interface ProgramOptions {
  /** The built command line, dist/cli.js. */
  readonly cli: string;
  readonly command: 'agent' | 'controller';
  /** By the names that the program's own tables use: `redisUrl`, not `--redis-url`. */
  readonly settings: Readonly<Record<string, string>>;
  /** More words for Node itself. */
  readonly nodeArgs?: readonly string[];
}

export interface ProgramPart extends Service {
  readonly port: number;
  /** What it has logged, in all its lives. */
  log(): string;
  /** The answer of `/readyz`, `/livez` or `/metrics`; null where there is none. */
  ask(path: '/readyz' | '/livez' | '/metrics'): Promise<{ status: number; body: string } | null>;
}

/** Starts an agent or a controller; returns when its HTTP side answers. Throws PART_FAILED with what it said. */
export async function startProgram({
  cli,
  command,
  settings,
  nodeArgs = [],
}: ProgramOptions): Promise<ProgramPart> {
  const port = await freePort();
  const place = scratch(command, undefined);
  const logFile = join(place.dir, `${command}.log`);
  const all = { httpAddress: `127.0.0.1:${port}`, ...settings };
  const env = Object.fromEntries(Object.entries(all).map(([key, value]) => [variableOf(key), value]));
  const service = await keepService(
    () =>
      startProcess({
        name: command,
        command: process.execPath,
        args: ['--max-semi-space-size=1', '--v8-pool-size=1', ...nodeArgs, cli, command],
        env: { PATH: process.env['PATH'], ...env },
        logFile,
        ready: async () => (await ask(port, '/livez'))?.status === 200,
      }),
    async () => place.remove(),
  );
  return Object.assign(service, {
    port,
    log: () => readFileSync(logFile, 'utf8'),
    ask: (path: string) => ask(port, path),
  });
}

function ask(port: number, path: string): Promise<{ status: number; body: string } | null> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, timeout: 2_000 }, (response) => {
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
