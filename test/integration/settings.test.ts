/*
 * Wrong settings: with each of them the built program prints one error that names the setting and the cure, without a stack
 * trace or a password. Exit code 2: the command line is wrong; 1: a service is not what the setting expects.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server as GrpcServer } from '@grpc/grpc-js';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { programEnvironment } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { type LocalRedisCluster, startRedisCluster } from '../../devtools/localServices/redisCluster.ts';
import { type LocalRedisSentinel, startRedisSentinel } from '../../devtools/localServices/redisSentinel.ts';
import { urlAs } from '../../devtools/localServices/redisUsers.ts';
import { listenOn, type SocketListener } from '../../devtools/simulator/listener.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { AGENT_SETTINGS } from '../../src/agent/config.ts';
import { CONTROLLER_SETTINGS } from '../../src/controller/config.ts';
import { REPORT_SETTINGS } from '../../src/controller/reports/settings.ts';
import { printError } from '../../src/platform/commandLine.ts';
import type { ErrorCode } from '../../src/platform/errors.ts';
import {
  declareSettings,
  flagOf,
  REQUIRED,
  readSettings,
  type Setting,
  type SettingTable,
  variableOf,
} from '../../src/platform/settings.ts';
import type { RedisUser } from '../../src/redis/users.ts';
import { MAINTAIN_SETTINGS, MIGRATE_SETTINGS } from '../../src/store/settings.ts';
import { CLI } from '../support/build.ts';
import { startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

/** Stands for every password: it must never be printed. */
const SECRET = 'sesame-9f3c';
const COMMANDS = ['agent', 'controller', 'migrate', 'maintain', 'report'] as const;
type CommandName = (typeof COMMANDS)[number];

interface Ended {
  /** The exit code, or the signal that killed the program. */
  readonly code: number | string | null;
  readonly stdout: string;
  /** The lines of stderr that are no log lines. */
  readonly message: string;
  readonly log: readonly Record<string, unknown>[];
}

interface Run {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Terminates the program once it has logged this. */
  readonly until?: string;
  /** Nobody answers it. */
  readonly timesOut?: boolean;
}

const TIMED_OUT = /timed out|timeout|DEADLINE_EXCEEDED/;
const MAX_TRIES = 4;

/** Runs the program to its end, and again where a busy machine let it wait too long for an answer: that is another error. */
async function plegwatch(command: string, options: Run = {}): Promise<Ended> {
  for (let tries = 1; ; tries += 1) {
    const ended = await runOnce(command, options);
    const problems = ended.log.filter(({ level }) => level === 'warn' || level === 'error');
    const timedOut = TIMED_OUT.test(ended.message + JSON.stringify(problems));
    if (!timedOut || options.timesOut === true || tries === MAX_TRIES) return ended;
  }
}

function runOnce(command: string, { args = [], env = {}, until: logLine }: Run): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, command, ...args], {
      env: { ...programEnvironment(), ...env },
    });
    let stdout = '';
    let stderr = '';
    let asked = false;
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString('utf8');
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString('utf8');
      if (logLine !== undefined && !asked && stderr.includes(logLine)) asked = child.kill('SIGTERM');
    });
    const late = setTimeout(() => child.kill('SIGKILL'), 240_000);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(late);
      if ((stdout + stderr).includes(SECRET)) reject(new Error(`a password is printed: ${stdout}${stderr}`));
      const lines = stderr.split('\n').filter((line) => line !== '');
      resolve({
        code: code ?? signal,
        stdout,
        message: lines.filter((line) => !line.startsWith('{')).join('\n'),
        log: lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)),
      });
    });
  });
}

/** Expects one error of two lines, the second with the cure and the code, and no stack trace. */
function expectRefusal({ code, message }: Ended, error: ErrorCode, ...names: readonly string[]): void {
  const lines = message.split('\n');
  expect(message).toMatch(/^plegwatch: /);
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatch(new RegExp(`^\\S.+  \\[${error}\\]$`));
  expect(message).not.toMatch(/^ {4}at /m);
  for (const name of names) expect(message).toContain(name);
  expect(code).toBe(error === 'SETTING_INVALID' ? 2 : 1);
}

/** Expects a usage error with one line for each problem. */
function expectProblems({ code, message, log }: Ended, command: string, problems: readonly string[]): void {
  expect(message.split('\n')).toEqual([
    ...problems.map((problem, i) => (i === 0 ? `plegwatch: ${problem}` : problem)),
    `See plegwatch ${command} --help.  [SETTING_INVALID]`,
  ]);
  expect(code).toBe(2);
  expect(log).toEqual([]);
}

const flags = (settings: Readonly<Record<string, string>>): string[] =>
  Object.entries(settings).flatMap(([key, value]) => [flagOf(key), value]);

const TABLES = {
  agent: AGENT_SETTINGS,
  controller: CONTROLLER_SETTINGS,
  migrate: MIGRATE_SETTINGS,
  maintain: MAINTAIN_SETTINGS,
  report: REPORT_SETTINGS,
} satisfies Record<CommandName, SettingTable>;

/** Reads the settings of a command as the program does before anything else, in this process; it must refuse them. */
function refused(command: CommandName, settings: Readonly<Record<string, string>>): Ended {
  const table = TABLES[command];
  const parsed = declareSettings(new Command('plegwatch').command(command), table).exitOverride();
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    readSettings(parsed.parse(flags(settings), { from: 'user' }), table);
  } catch (error) {
    const code = printError('plegwatch', error);
    const message = written.mock.calls.join('').trimEnd();
    if (message.includes(SECRET)) throw new Error(`a password is printed: ${message}`);
    return { code, stdout: '', message, log: [] };
  } finally {
    written.mockRestore();
  }
  throw new Error(`${command} accepts ${JSON.stringify(settings)}`);
}

describe('a command line', () => {
  test('without required settings is refused with all that are missing', async () => {
    expectProblems(await plegwatch('agent'), 'agent', [
      '--cluster (PLEGWATCH_CLUSTER) is required',
      '--node (PLEGWATCH_NODE) is required',
      '--redis-url (PLEGWATCH_REDIS_URL) is required, or --redis-secret-dir (PLEGWATCH_REDIS_SECRET_DIR)',
    ]);
    expectProblems(await plegwatch('controller'), 'controller', [
      '--cluster (PLEGWATCH_CLUSTER) is required',
      '--redis-url (PLEGWATCH_REDIS_URL) is required, or --redis-secret-dir (PLEGWATCH_REDIS_SECRET_DIR)',
      '--database-url (PLEGWATCH_DATABASE_URL) is required, or --database-secret-dir (PLEGWATCH_DATABASE_SECRET_DIR)',
    ]);
    expectProblems(await plegwatch('migrate'), 'migrate', [
      '--database-url (PLEGWATCH_DATABASE_URL) is required, or --database-secret-dir (PLEGWATCH_DATABASE_SECRET_DIR)',
    ]);
    expectProblems(await plegwatch('report'), 'report', [
      '--database-url (PLEGWATCH_DATABASE_URL) is required, or --database-secret-dir (PLEGWATCH_DATABASE_SECRET_DIR)',
    ]);
  });

  test('with several errors is refused with all of them at once', async () => {
    const args = flags({
      cluster: 'Not Good',
      node: 'n',
      redisUrl: `http://:${SECRET}@h`,
      relistPeriod: '5',
    });
    args.push('extra', '--spool-max-bytes', 'many', '--http-address', ':99999', '--bogus', SECRET);
    const ended = await plegwatch('agent', { args, env: { PLEGWATCH_SUBSCRIBE: 'sometimes' } });
    expectProblems(ended, 'agent', [
      '--bogus: there is no such option',
      'extra: there is no such argument',
      '--cluster (PLEGWATCH_CLUSTER) must be lower case letters, digits, - and ., at most 63 characters',
      '--redis-url (PLEGWATCH_REDIS_URL) must begin with redis://, redis+cluster:// or redis+sentinel://, or with rediss for TLS: redis://[:password@]host:port',
      '--subscribe (PLEGWATCH_SUBSCRIBE) must be one of auto, always, never',
      '--relist-period (PLEGWATCH_RELIST_PERIOD) must be a duration such as 250ms, 5s or 24h, from 200ms to 60000ms',
      expect.stringMatching(/^--spool-max-bytes \(PLEGWATCH_SPOOL_MAX_BYTES\) must be a size such as 65536/),
      '--http-address (PLEGWATCH_HTTP_ADDRESS) must have a port from 0 to 65535',
    ]);
  });

  test.each(COMMANDS)(
    'of %s with an unknown option is refused without repeating its value',
    async (command) => {
      const ended = await plegwatch(command, { args: [`--pasword=${SECRET}`] });
      expect(ended.message).toContain('--pasword');
      expect(ended.message).toContain('there is no such option');
      expect(ended.code).toBe(2);
    },
  );

  test('with an unknown command is refused with a hint', async () => {
    expect(await plegwatch('agnet')).toMatchObject({
      code: 2,
      message: "error: unknown command 'agnet'\n(Did you mean agent?)\nSee plegwatch --help.",
    });
  });

  const urls = [
    'localhost:6379',
    `http://:${SECRET}@h:1`,
    'redis://',
    'redis://h/name',
    'redis://h:99999',
    `redis://:${SECRET} x@h`,
    `redis://:${SECRET}%@h`,
    `redis://:a@${SECRET}/x@h/y`,
    `redis://:${SECRET}@a,b`,
    `redis+cluster://:${SECRET}@a,b/1`,
    `redis+cluster://:${SECRET}@a:1,:${SECRET}@b:2`,
    `redis+sentinel://:${SECRET}@a,b`,
  ];
  const ofRedis = '--redis-url (PLEGWATCH_REDIS_URL) must';
  const withRedis = (redisUrl: string) =>
    [
      ['agent', { cluster: 'c', node: 'n', redisUrl }],
      ['controller', { cluster: 'c', redisUrl, databaseUrl: 'postgres://u@127.0.0.1/d' }],
    ] as const;
  test.each(urls)('with the Redis URL %j is refused before anything else is tried', async (redisUrl) => {
    for (const [command, settings] of withRedis(redisUrl))
      expectRefusal(refused(command, settings), 'SETTING_INVALID', ofRedis);
  });

  const ofDatabase = '--database-url (PLEGWATCH_DATABASE_URL) must';
  const withDatabase = (databaseUrl: string) =>
    [
      ['controller', { cluster: 'c', redisUrl: 'redis://127.0.0.1', databaseUrl }],
      ['migrate', { databaseUrl }],
      ['maintain', { databaseUrl }],
      ['report', { cluster: 'c', databaseUrl }],
    ] as const;
  test.each([
    'localhost',
    `mysql://u:${SECRET}@h/d`,
    `postgres://u:${SECRET}@h:99999/d`,
    `redis://:${SECRET}@127.0.0.1:6379`,
  ])('with the database URL %j is refused', async (databaseUrl) => {
    for (const [command, settings] of withDatabase(databaseUrl))
      expectRefusal(refused(command, settings), 'SETTING_INVALID', ofDatabase);
  });

  test('is refused by the program as its settings are when they are read', async () => {
    for (const [command, settings] of [
      ...withRedis(`redis://:${SECRET} x@h`),
      ...withDatabase(`mysql://u:${SECRET}@h/d`),
    ]) {
      const { code, message } = await plegwatch(command, { args: flags(settings) });
      const here = refused(command, settings);
      expect({ code, message }).toEqual({ code: here.code, message: here.message });
    }
  });

  test.each(COMMANDS)(
    '--help of %s lists every setting with its variable and its default',
    async (command) => {
      const { code, stdout } = await plegwatch(command, { args: ['--help'] });
      expect(code).toBe(0);
      const help = stdout.replaceAll(/\s+/g, ' ');
      for (const [key, { fallback, internal }] of Object.entries<Setting<unknown>>(TABLES[command])) {
        if (internal === true) {
          expect(help).not.toContain(variableOf(key));
          continue;
        }
        const at = help.indexOf(` ${flagOf(key)} `);
        const about = help.slice(at, help.indexOf(`env: ${variableOf(key)})`));
        expect([at > 0, about.length > 0], key).toEqual([true, true]);
        if (fallback === REQUIRED) expect(about).toContain('(required,');
        else if (fallback !== undefined) expect(about).toContain(`default: ${fallback}`);
      }
    },
  );

  test('--help lists every command', async () => {
    const { code, stdout } = await plegwatch('--help');
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(stdout).toContain(`  ${command} `);
  });
});

needs('redis-server', 'postgres')('a setting that leads to the wrong part', () => {
  let dir: string;
  let redis: LocalRedis;
  let locked: LocalRedis;
  let cluster: LocalRedisCluster;
  let sentinel: LocalRedisSentinel;
  let postgres: TestServer;
  let runtime: SimulatedRuntime;
  let databaseUrl: string;
  let grpc: SocketListener;
  const servers: Server[] = [];
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'plegwatch-settings-'));
    [redis, locked, cluster, sentinel, postgres, runtime] = await Promise.all([
      startRedis({ clusters: ['test', 'other'] }),
      startRedis({ args: ['--requirepass', 'right'] }),
      startRedisCluster(),
      startRedisSentinel(),
      startServer(),
      startSimulatedRuntime({ socket: join(dir, 'cri.sock') }),
    ]);
    databaseUrl = await postgres.database();
    grpc = await listenOn(join(dir, 'grpc.sock'), new GrpcServer());
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
    await Promise.all([cluster?.stop(), sentinel?.stop()]);
    await Promise.all([redis?.stop(), locked?.stop(), postgres?.stop(), runtime?.stop(), grpc?.close()]);
    rmSync(dir, { recursive: true, force: true });
  });

  /** Lets a server listen, on a path or on a free port. */
  async function listening(server: Server, path?: string): Promise<number> {
    servers.push(server);
    server.on('connection', (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => {
      if (path === undefined) server.listen(0, '127.0.0.1', resolve);
      else server.listen(path, resolve);
    });
    return path === undefined ? (server.address() as AddressInfo).port : 0;
  }
  const silent = (path?: string) => listening(createServer(), path);
  const web = (path?: string) =>
    listening(
      createHttpServer((_, response) => response.end('hello')),
      path,
    );

  const agent = (settings: Record<string, string> = {}, more: Run = {}) =>
    plegwatch('agent', {
      ...more,
      args: [
        ...flags({
          cluster: 'test',
          node: 'n',
          redisUrl: redis.urlOf('agent', settings['cluster']),
          criEndpoint: `unix://${runtime.socket}`,
          spoolDir: join(dir, 'spool'),
          httpAddress: '127.0.0.1:0',
          ...settings,
        }),
        ...(more.args ?? []),
      ],
    });
  const controller = (settings: Record<string, string> = {}, more: Run = {}) =>
    plegwatch('controller', {
      ...more,
      args: [
        ...flags({
          cluster: 'test',
          redisUrl: redis.urlOf('controller'),
          databaseUrl,
          httpAddress: '127.0.0.1:0',
          ...settings,
        }),
        ...(more.args ?? []),
      ],
      env: { PLEGWATCH_INTERVAL_START: '100ms', ...more.env },
    });
  const noKube = { args: ['--no-kube'] };

  describe('--cri-endpoint', () => {
    const endpoint = (name: string) => ({ criEndpoint: `unix://${join(dir, name)}` });

    test('where nothing listens is refused', async () => {
      const ended = await agent(endpoint('nothing.sock'));
      expectRefusal(ended, 'CRI_UNREACHABLE', `--cri-endpoint unix://${dir}/nothing.sock`, 'ENOENT');
    });

    test('where a web server listens is refused', async () => {
      await web(join(dir, 'web.sock'));
      expectRefusal(await agent(endpoint('web.sock')), 'CRI_NOT_A_RUNTIME', '--cri-endpoint');
    });

    test('where a gRPC server without a runtime listens is refused', async () => {
      expectRefusal(await agent(endpoint('grpc.sock')), 'CRI_NOT_A_RUNTIME', 'UNIMPLEMENTED');
    });

    test('where a silent server listens is refused', async () => {
      await silent(join(dir, 'silent.sock'));
      const ended = await agent(endpoint('silent.sock'), { timesOut: true });
      expectRefusal(ended, 'CRI_NOT_A_RUNTIME', 'DEADLINE_EXCEEDED');
    });
  });

  describe('--redis-url', () => {
    const both = async (redisUrl: string, code: ErrorCode, ...names: readonly string[]) => {
      expectRefusal(await agent({ redisUrl }), code, '--redis-url', ...names);
      expectRefusal(await controller({ redisUrl }, noKube), code, '--redis-url', ...names);
    };

    /** A controller ends; an agent records, and says the same. */
    const refusedLogin = async (redisUrl: string, ...names: readonly string[]) => {
      expectRefusal(await controller({ redisUrl }, noKube), 'REDIS_REFUSED', '--redis-url', ...names);
      const { log, code } = await agent({ redisUrl }, { until: 'agent ready' });
      const warning = log.find((line) => line['code'] === 'REDIS_REFUSED');
      for (const name of ['--redis-url', ...names]) {
        expect(`${String(warning?.['error'])} ${String(warning?.['cure'])}`).toContain(name);
      }
      expect(code).toBe(0);
    };

    test('a --redis-url of a web server is refused', async () => {
      await both(`redis://:${SECRET}@127.0.0.1:${await web()}`, 'REDIS_NOT_REDIS');
    });

    test('a --redis-url of a Postgres is refused', async () => {
      await both(`redis://:${SECRET}@127.0.0.1:${postgres.part.port}`, 'REDIS_NOT_REDIS');
    });

    test('a --redis-url of a silent server keeps a controller from starting', async () => {
      const redisUrl = `redis://:${SECRET}@127.0.0.1:${await silent()}`;
      const ended = await controller({ redisUrl }, { ...noKube, timesOut: true });
      expectRefusal(ended, 'REDIS_UNREACHABLE', '--redis-url', 'timed out');
    });

    test('without the password that Redis asks for ends a controller, and an agent runs', async () => {
      await refusedLogin(locked.url, 'asks for a password', 'PLEGWATCH_REDIS_URL');
    });

    test('with a wrong password ends a controller, and an agent runs', async () => {
      await refusedLogin(`redis://:${SECRET}@127.0.0.1:${locked.port}`, 'WRONGPASS');
    });

    test('that names a database is refused', async () => {
      const ended = await plegwatch('controller', {
        args: flags({ cluster: 'c', redisUrl: `${redis.url}/1` }),
      });
      expect(ended.message).toContain('--redis-url (PLEGWATCH_REDIS_URL) must not name a database');
      expect(ended.code).toBe(2);
    });

    test('a --redis-url for a cluster that names a single Redis, or the other way round, is refused', async () => {
      const hosts = `127.0.0.1:${redis.port}`;
      await both(`redis+cluster://${hosts}`, 'REDIS_NOT_REDIS', 'a Redis that is no cluster', 'redis://');
      await both(cluster.masters[0]?.url ?? '', 'REDIS_NOT_REDIS', 'a node of', 'redis+cluster://');
    });

    test('a --redis-url for a Sentinel that names a Redis, or the other way round, is refused', async () => {
      const hosts = `127.0.0.1:${redis.port}`;
      await both(`redis+sentinel://${hosts}/plegwatch`, 'REDIS_NOT_REDIS', 'no cluster', 'redis://');
      await both(sentinel.sentinel.url, 'REDIS_NOT_REDIS', 'a Redis Sentinel', 'redis+sentinel://');
    });

    test('with a master that the Sentinel does not know ends a controller, and an agent runs', async () => {
      const redisUrl = `redis+sentinel://127.0.0.1:${sentinel.sentinel.port}/other`;
      await refusedLogin(redisUrl, 'no master named other');
    });

    test('with a password that no node of the cluster has ends a controller, and an agent runs', async () => {
      const hosts = `127.0.0.1:${cluster.masters[0]?.port},127.0.0.1:${cluster.masters[1]?.port}`;
      await refusedLogin(`redis+cluster://u:${SECRET}@${hosts}`, 'WRONGPASS');
    });

    test('with one unreachable host works over the others', async () => {
      const redisUrl = `redis+cluster://127.0.0.1:${await freePort()},127.0.0.1:${cluster.masters[2]?.port}`;
      const as = (user: RedisUser) => ({ redisUrl: urlAs(redisUrl, user, 'test') });
      for (const ended of [
        await agent(as('agent'), { until: 'agent ready' }),
        await controller(as('controller'), { ...noKube, until: 'controller ready' }),
      ]) {
        // A busy machine may stall a program, which it says too.
        const problems = ended.log.filter(({ level }) => level === 'warn' || level === 'error');
        expect(problems.filter((line) => /redis/i.test(JSON.stringify(line)))).toEqual([]);
        expect(ended.code).toBe(0);
      }
    });

    test('a --redis-url for a cluster or a Sentinel where nothing listens ends a controller', async () => {
      for (const redisUrl of [
        `redis+cluster://:${SECRET}@127.0.0.1:${await freePort()},127.0.0.1:${await freePort()}`,
        `redis+sentinel://:${SECRET}@127.0.0.1:${await freePort()}/plegwatch`,
      ]) {
        expectRefusal(
          await controller({ redisUrl }, noKube),
          'REDIS_UNREACHABLE',
          '--redis-url',
          'ECONNREFUSED',
        );
        const ended = await agent({ redisUrl }, { until: 'agent ready' });
        expect(ended.log).toContainEqual(expect.objectContaining({ code: 'REDIS_UNREACHABLE' }));
        expect(ended.code).toBe(0);
      }
    });

    test('where nothing listens ends a controller, and an agent runs without Redis', async () => {
      const redisUrl = `redis://:${SECRET}@127.0.0.1:${await freePort()}`;
      expectRefusal(
        await controller({ redisUrl }, noKube),
        'REDIS_UNREACHABLE',
        '--redis-url',
        'ECONNREFUSED',
      );
      const ended = await agent({ redisUrl }, { until: 'agent ready' });
      expect(ended.log).toContainEqual(
        expect.objectContaining({
          level: 'warn',
          code: 'REDIS_UNREACHABLE',
          msg: 'Redis unreachable, records stay in the spool',
        }),
      );
      expect(ended.code).toBe(0);
    });
  });

  describe('--database-url', () => {
    const each = async (url: string, code: ErrorCode, names: readonly string[] = [], more: Run = {}) => {
      for (const ended of [
        await controller({ databaseUrl: url }, { ...noKube, ...more }),
        await plegwatch('migrate', { args: flags({ databaseUrl: url }), ...more }),
        await plegwatch('maintain', { args: flags({ databaseUrl: url }), ...more }),
        await plegwatch('report', { args: flags({ databaseUrl: url, cluster: 'test' }), ...more }),
      ]) {
        expectRefusal(ended, code, '--database-url (PLEGWATCH_DATABASE_URL)', ...names);
      }
    };
    const changed = (change: (url: URL) => void) => {
      const url = new URL(databaseUrl);
      change(url);
      return url.href;
    };

    test('with a wrong password is refused', async () => {
      const url = changed((each) => {
        each.password = SECRET;
      });
      await each(url, 'DATABASE_REFUSED', ['password authentication failed']);
    });

    test('a --database-url of a missing database is refused', async () => {
      const url = changed((each) => {
        each.pathname = '/nowhere';
      });
      await each(url, 'DATABASE_REFUSED', ['database "nowhere" does not exist']);
    });

    test('where nothing listens is refused', async () => {
      const port = await freePort();
      const url = changed((each) => {
        each.port = `${port}`;
        each.password = SECRET;
      });
      await each(url, 'DATABASE_UNREACHABLE', ['ECONNREFUSED']);
    });

    test('a --database-url of a Redis is refused', async () => {
      const url = `postgres://u:${SECRET}@127.0.0.1:${redis.port}/d`;
      // It waits for the rest of what it takes for a command.
      await each(url, 'DATABASE_UNREACHABLE', [], { timesOut: true });
    });

    test('a --database-url of a web server is refused', async () => {
      await each(`postgres://u:${SECRET}@127.0.0.1:${await web()}/d`, 'DATABASE_UNREACHABLE');
    });

    test('a --database-url of a database that was not migrated is refused by all but migrate', async () => {
      const url = await postgres.emptyDatabase();
      const names = ['plegwatch migrate', '--database-url (PLEGWATCH_DATABASE_URL)'];
      expectRefusal(await controller({ databaseUrl: url }, noKube), 'DATABASE_NOT_MIGRATED', ...names);
      const report = await plegwatch('report', { args: flags({ databaseUrl: url, cluster: 'test' }) });
      expectRefusal(report, 'DATABASE_NOT_MIGRATED', ...names);
      const maintain = await plegwatch('maintain', { args: flags({ databaseUrl: url }) });
      expectRefusal(maintain, 'DATABASE_NOT_MIGRATED', ...names);
      expect((await plegwatch('migrate', { args: flags({ databaseUrl: url }) })).code).toBe(0);
      expect((await plegwatch('report', { args: flags({ databaseUrl: url }) })).code).toBe(0);
    });
  });

  describe('--spool-dir', () => {
    test('that is a file is refused', async () => {
      const spoolDir = join(dir, 'file');
      writeFileSync(spoolDir, '');
      expectRefusal(await agent({ spoolDir }), 'SPOOL_UNUSABLE', '--spool-dir', spoolDir);
    });

    test('that cannot be written is refused', async () => {
      expectRefusal(
        await agent({ spoolDir: '/sys/plegwatch' }),
        'SPOOL_UNUSABLE',
        '--spool-dir',
        '/sys/plegwatch',
      );
    });

    test('that cannot be written falls back to memory with --spool-fallback', async () => {
      const settings = { spoolDir: '/sys/plegwatch', spoolFallback: 'memory' };
      const ended = await agent(settings, { until: 'agent ready' });
      expect(ended.code).toBe(0);
      expect(ended.log.map(({ msg }) => msg)).toContain('spool unusable, running from memory');
    });

    test('a spool of another node or cluster is moved aside unchanged', async () => {
      const spoolDir = join(dir, 'spool-of-a');
      const asides = () => readdirSync(spoolDir).filter((name) => name.startsWith('foreign-'));
      expect((await agent({ node: 'a', spoolDir }, { until: 'agent ready' })).code).toBe(0);
      const ended = await agent({ node: 'b', spoolDir }, { until: 'agent ready' });
      expect(ended.code).toBe(0);
      expect(ended.log).toContainEqual(
        expect.objectContaining({
          level: 'error',
          spool: expect.objectContaining({ node: 'a', cluster: 'test' }),
        }),
      );
      expect(asides()).toHaveLength(1);
      const settings = { node: 'b', cluster: 'other', spoolDir };
      expect((await agent(settings, { until: 'agent ready' })).code).toBe(0);
      expect(asides()).toHaveLength(2);
    });
  });

  test('--http-address that is in use is refused', async () => {
    const httpAddress = `127.0.0.1:${await web()}`;
    const names = [`${httpAddress} (--http-address)`, 'EADDRINUSE', 'PLEGWATCH_HTTP_ADDRESS'];
    expectRefusal(await agent({ httpAddress }), 'HTTP_ADDRESS_IN_USE', ...names);
    expectRefusal(await controller({ httpAddress }, noKube), 'HTTP_ADDRESS_IN_USE', ...names);
  });

  describe('variables', () => {
    test('set what flags set, and a flag wins over its variable', async () => {
      const env = {
        PLEGWATCH_CLUSTER: 'test',
        PLEGWATCH_NODE: 'from-variable',
        PLEGWATCH_REDIS_URL: redis.urlOf('agent'),
        PLEGWATCH_CRI_ENDPOINT: runtime.socket,
        PLEGWATCH_SPOOL_DIR: join(dir, 'spool-variable'),
        PLEGWATCH_HTTP_ADDRESS: '127.0.0.1:0',
        PLEGWATCH_RELIST_PERIOD: '700ms',
      };
      const { log, code } = await plegwatch('agent', {
        env,
        args: ['--relist-period', '900ms'],
        until: 'agent ready',
      });
      const settings = log.find((line) => line['msg'] === 'agent starting')?.['settings'];
      expect(settings).toMatchObject({ node: 'from-variable', relistPeriod: '900ms' });
      expect(code).toBe(0);
    });

    test.each(['false', '0', ''])('leave a switch off with the value %j', async (value) => {
      const ended = await controller({}, { env: { PLEGWATCH_NO_KUBE: value } });
      expectRefusal(ended, 'KUBE_CONFIG', '--kubeconfig');
    });

    test.each(['true', '1'])('switch on with the value %j', async (value) => {
      const ended = await controller({}, { env: { PLEGWATCH_NO_KUBE: value }, until: 'controller ready' });
      expect(ended.log).toContainEqual(expect.objectContaining({ msg: 'controller ready', reports: false }));
      expect(ended.code).toBe(0);
    });

    test('with any other value for a switch are refused', async () => {
      const ended = await controller({}, { env: { PLEGWATCH_NO_KUBE: 'nope' } });
      expectProblems(ended, 'controller', ['--no-kube (PLEGWATCH_NO_KUBE) must be true or false']);
    });

    test('that hold a password are logged without it', async () => {
      const url = new URL(databaseUrl);
      const query = new URLSearchParams({ user: url.username, password: SECRET });
      const ended = await controller(
        { databaseUrl: `postgres://${url.host}${url.pathname}?${query}` },
        noKube,
      );
      expectRefusal(ended, 'DATABASE_REFUSED', '--database-url');
    });
  });

  describe('--kubeconfig', () => {
    const kubeconfig = (name: string, text: string) => {
      const file = join(dir, name);
      writeFileSync(file, text);
      return { kubeconfig: file };
    };
    const naming = (name: string, cluster: Record<string, unknown>, token = SECRET) =>
      kubeconfig(
        name,
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          'current-context': 'c',
          clusters: [{ name: 'c', cluster }],
          contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
          users: [{ name: 'c', user: { token } }],
        }),
      );

    test('that is missing is refused', async () => {
      const file = join(dir, 'no-kubeconfig');
      expectRefusal(await controller({ kubeconfig: file }), 'KUBE_CONFIG', `--kubeconfig ${file}`, 'ENOENT');
    });

    test('that is omitted outside a pod is refused', async () => {
      expectRefusal(await controller(), 'KUBE_CONFIG', '--kubeconfig (PLEGWATCH_KUBECONFIG)', '--no-kube');
    });

    test.each([
      ['empty', ''],
      ['garbage', '{{{:'],
      ['a list', '- a\n- b\n'],
      ['without a context', '{"apiVersion": "v1", "kind": "Config"}'],
      ['a folder', null],
    ])('that is %s is refused', async (what, text) => {
      const name = `kubeconfig-${what.replaceAll(' ', '-')}`;
      const settings = text === null ? { kubeconfig: join(dir, name) } : kubeconfig(name, text);
      if (text === null) mkdirSync(settings.kubeconfig);
      expectRefusal(await controller(settings), 'KUBE_CONFIG', '--kubeconfig');
    });

    test('a kubeconfig of an unreachable server is refused', async () => {
      const ended = await controller(
        naming('kube-away', { server: `https://127.0.0.1:${await freePort()}` }),
      );
      expectRefusal(ended, 'KUBE_UNREACHABLE', '--kubeconfig', 'ECONNREFUSED');
    });

    test('a kubeconfig of a server without TLS is refused', async () => {
      const ended = await controller(naming('kube-web', { server: `https://127.0.0.1:${await web()}` }));
      expectRefusal(ended, 'KUBE_UNREACHABLE', '--kubeconfig');
    });

    needs('kube-apiserver', 'etcd')('for a real API server', () => {
      let api: LocalApiServer;
      beforeAll(async () => {
        api = await startApiServer({ users: { nobody: [] } });
      });
      afterAll(() => api?.stop());
      const trusted = () => ({
        server: api.url,
        'certificate-authority-data': Buffer.from(api.ca).toString('base64'),
      });

      test('a kubeconfig without the CA of its server is refused', async () => {
        const ended = await controller(naming('kube-untrusted', { server: api.url }));
        expectRefusal(ended, 'KUBE_CONFIG', 'certificate', 'not trusted', '--kubeconfig');
      });

      test('a kubeconfig with a wrong token is refused', async () => {
        const ended = await controller(naming('kube-token', trusted()));
        expectRefusal(ended, 'KUBE_REFUSED', 'does not accept our credentials', '--kubeconfig');
      });

      test('a kubeconfig with a user without permissions is refused', async () => {
        const ended = await controller({ kubeconfig: api.kubeconfigOf('nobody') });
        expectRefusal(ended, 'KUBE_REFUSED', 'list nodes', 'Grant');
      });
    });
  });

  test('valid settings start both programs, which exit cleanly', async () => {
    const ends = await Promise.all([
      agent({}, { until: 'agent ready' }),
      controller({}, { ...noKube, until: 'controller ready' }),
    ]);
    expect(ends.map(({ code, message }) => [code, message])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    await waitFor('nobody is subscribed any more', () => runtime.subscribers === 0);
  });
});
