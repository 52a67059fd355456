/* The local services that the integration tests run on: each starts, survives what tests do to it, and leaves nothing behind. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import {
  cleanUpContainerd,
  containerIds,
  shimSocket,
} from '../../devtools/localServices/containerdCleanup.ts';
import { startKubelet } from '../../devtools/localServices/kubelet.ts';
import { startInMachine, startMachine } from '../../devtools/localServices/machine.ts';
import { startPostgres } from '../../devtools/localServices/postgres.ts';
import { firstEphemeralPort, freePort, startProcess, waitFor } from '../../devtools/localServices/process.ts';
import { startRedis } from '../../devtools/localServices/redis.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import {
  type ContainerdVersion,
  ProgramMissing,
  type ProgramName,
  where,
} from '../../devtools/localServices/where.ts';
import { kubeletTraces, leftovers, newLeftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { drivePods } from '../support/pods.ts';

const leftHere = newLeftovers();

afterEach(() => expect(leftHere()).toEqual([]));

describe('startProcess', () => {
  const dir = mkdtempSync(join(tmpdir(), 'process-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  let logs = 0;
  const log = () => join(dir, `${++logs}.log`);

  it('throws with the end of the log when the process ends before it is ready', async () => {
    const starting = startProcess({
      name: 'false start',
      command: '/bin/sh',
      args: ['-c', 'echo the reason >&2; exit 3'],
      logFile: log(),
      ready: async () => false,
    });
    await expect(starting).rejects.toThrow(/false start ended before it was ready[\s\S]*the reason/);
  });

  it('kills a process that ignores SIGTERM after its deadline', async () => {
    const logFile = log();
    const process = await startProcess({
      name: 'deaf',
      command: '/bin/sh',
      args: ['-c', 'trap "" TERM; echo deaf; while :; do sleep 0.05; done'],
      logFile,
      ready: async () => readFileSync(logFile, 'utf8') === 'deaf\n',
      stopWithinMs: 200,
    });
    await expect(process.stop()).resolves.toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('stops a frozen process', async () => {
    const process = await startProcess({ name: 'frozen', command: 'sleep', args: ['60'], logFile: log() });
    process.kill('SIGSTOP');
    await expect(process.stop()).resolves.toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('starts the process in its own group, so that Ctrl-C on the terminal does not reach it', async () => {
    const process = await startProcess({ name: 'apart', command: 'sleep', args: ['60'], logFile: log() });
    const [, group] = /\) \S+ \d+ (\d+) /.exec(readFileSync(`/proc/${process.pid}/stat`, 'utf8')) ?? [];
    expect(group).toBe(`${process.pid}`);
    await process.stop();
  });

  it('starts a process that ends when its starter is killed', async () => {
    const starter = `
      import { startProcess } from '${join(import.meta.dirname, '../../devtools/localServices/process.ts')}';
      const { pid } = await startProcess({ name: 'orphan', command: 'sleep', args: ['60'], logFile: '/dev/null' });
      console.log(pid);
      process.kill(process.pid, 'SIGKILL');
    `;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', starter], {
      encoding: 'utf8',
    });
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(1);
    await waitFor('the orphan is gone', 240_000, () => !existsSync(`/proc/${pid}/exe`));
  });

  it('gets a port that no connection and no other process gets while it runs', async () => {
    const port = await freePort();
    expect(port).toBeLessThan(firstEphemeralPort());
    const taking = `
      import { freePort } from '${join(import.meta.dirname, '../../devtools/localServices/process.ts')}';
      import { mock } from 'node:test';
      import crypto from 'node:crypto';
      import { syncBuiltinESMExports } from 'node:module';
      const drawn = [${port}, ${port}, ${port} + 1, ${port} + 2, ${port} + 3];
      mock.method(crypto, 'randomInt', () => drawn.shift());
      syncBuiltinESMExports();
      console.log(await freePort());
    `;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', taking], {
      encoding: 'utf8',
    });
    expect(Number(stdout)).toBeGreaterThan(port);
  });

  it('gets a different free port for each of several requests', async () => {
    const ports = new Set(await Promise.all([freePort(), freePort(), freePort()]));
    expect(ports.size).toBe(3);
  });
});

needs('root')('a machine of its own', () => {
  const dir = mkdtempSync(join(tmpdir(), 'machine-'));
  afterAll(() => rmSync(dir, { recursive: true }));

  it('reports the end of a process that was frozen before', async () => {
    const machine = await startMachine('machine', dir);
    try {
      const options = { name: 'frozen', command: 'sleep', args: ['3600'], logFile: join(dir, 'frozen.log') };
      const frozen = await startInMachine(machine.pid, options);
      const starter = Number(/PPid:\s+(\d+)/.exec(readFileSync(`/proc/${frozen.pid}/status`, 'utf8'))?.[1]);
      frozen.kill('SIGSTOP');
      // The process that started it in the machine stops with it.
      await waitFor('both are stopped', 240_000, () => [frozen.pid, starter].every(isStopped));
      frozen.kill('SIGCONT');
      frozen.kill('SIGTERM');
      await frozen.exited;
    } finally {
      await machine.stop();
    }
  });

  const isStopped = (pid: number) => /State:\s+T/.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
});

describe('a program that is missing', () => {
  it('is reported with the command that prepares it', () => {
    const script = join(import.meta.dirname, '../../devtools/localServices/where');
    const env = { ...process.env, PLEGWATCH_CACHE: '/nonexistent' };
    const { status, stderr } = spawnSync(script, ['kubelet'], { env, encoding: 'utf8' });
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining('run: devtools/localServices/prepare kubernetes\n'),
    ]);
  });

  it('is an error too when no program has its name', () => {
    expect(() => where('no-such-program' as ProgramName)).toThrow(ProgramMissing);
  });
});

needs('redis-server')('Redis', () => {
  it('refuses writes when it is full, and restarts empty after a kill', async () => {
    const redis = await startRedis({ args: ['--maxmemory', '2mb'] });
    try {
      const client = new Redis(redis.url);
      client.on('error', () => {});
      await client.set('kept', 'no');
      await expect(
        client.set('big', 'x'.repeat(4_000_000)).then(() => client.set('more', 'x')),
      ).rejects.toThrow('OOM');
      const first = redis.pid;
      await redis.kill();
      expect(redis.running()).toBe(false);
      await redis.restart();
      expect(redis.pid).not.toBe(first);
      expect(await client.get('kept')).toBeNull();
      client.disconnect();
    } finally {
      await redis.stop();
    }
  });

  it('keeps the folder of the caller when it stops', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'redis-'));
    const redis = await startRedis({ dir });
    await redis.stop();
    expect(existsSync(join(dir, 'redis.log'))).toBe(true);
    rmSync(dir, { recursive: true });
  });
});

needs('postgres')('Postgres', () => {
  const ask = async (url: string, statement: string): Promise<unknown[]> => {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query(statement);
    await client.end();
    return rows;
  };

  it('keeps committed rows when it is killed during a query', async () => {
    const postgres = await startPostgres();
    try {
      await ask(postgres.url, 'create table kept (n int); insert into kept values (42)');
      const busy = new pg.Client(postgres.url);
      busy.on('error', () => {});
      await busy.connect();
      const broken = expect(busy.query('select pg_sleep(60)')).rejects.toThrow();
      await postgres.kill();
      await broken;
      await postgres.restart();
      expect(await ask(postgres.url, 'select n from kept')).toEqual([{ n: 42 }]);
    } finally {
      await postgres.stop();
    }
  });

  it('applies settings and requires the password', async () => {
    const postgres = await startPostgres({ settings: { fsync: 'off' } });
    try {
      expect(await ask(postgres.url, 'show fsync')).toEqual([{ fsync: 'off' }]);
      const wrong = new URL(postgres.url);
      wrong.password = 'wrong';
      await expect(ask(wrong.href, 'select 1')).rejects.toThrow('password authentication failed');
    } finally {
      await postgres.stop();
    }
  });
});

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
)('the API server', () => {
  const kubectl = (kubeconfig: string, ...args: string[]) =>
    spawnSync(where('kubectl'), ['--kubeconfig', kubeconfig, ...args], { encoding: 'utf8' });

  const status = (api: LocalApiServer, path: string, token: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      get(`${api.url}${path}`, { ca: api.ca, agent: false, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).once('error', reject);
    });

  it('authorizes its users, issues tokens to service accounts, and keeps its objects when it is killed', async () => {
    const api = await startApiServer({ users: { visitor: ['visitors'] } });
    try {
      expect(await status(api, '/api/v1/nodes', api.token)).toBe(200);
      expect(await status(api, '/api/v1/nodes', 'wrong')).toBe(401);
      expect(kubectl(api.kubeconfigOf('visitor'), 'get', 'nodes').stderr).toContain('"visitor" cannot list');

      kubectl(api.kubeconfig, 'create', 'serviceaccount', 'robot');
      const token = kubectl(api.kubeconfig, 'create', 'token', 'robot').stdout.trim();
      expect(await status(api, '/api/v1/nodes', token)).toBe(403);

      await api.kill();
      await api.etcd.kill();
      await api.etcd.restart();
      await api.restart();
      expect(kubectl(api.kubeconfig, 'get', 'serviceaccount', 'robot', '-o', 'name').stdout).toBe(
        'serviceaccount/robot\n',
      );
    } finally {
      await api.stop();
    }
  });
});

const VERSIONS: readonly ContainerdVersion[] = ['2.1', '1.7', '1.6'];

for (const version of VERSIONS) {
  needs(
    'root',
    `containerd-${version}`,
    `ctr-${version}`,
    'runc',
    'image-pause',
  )(`containerd ${version}`, () => {
    it('runs pods, keeps them when it is killed, and removes everything when it stops', async () => {
      const containerd = await startContainerd({ version });
      const pods = drivePods(containerd);
      let sockets: string[] = [];
      try {
        expect(await containerd.ctr(['version'])).toMatch(new RegExp(`Version: +${version}\\.`));
        await pods.end(await pods.run('short'));
        const long = await pods.run('long');
        await containerd.kill();
        await containerd.restart();
        expect(await pods.counts()).toEqual({ sandboxes: 1, containers: 1 });
        await pods.stopContainer(long);
        await pods.run('left-running');
        const { dir } = containerd;
        sockets = containerIds(dir)
          .map((id) => shimSocket(dir, id))
          .filter(existsSync);
        expect(sockets).toHaveLength(2);
      } finally {
        pods.close();
        await containerd.stop();
      }
      expect(sockets.filter(existsSync)).toEqual([]);
    });
  });
}

needs('root', 'runc')('the folder of a containerd', () => {
  it('names the socket of a shim that was starting when its containerd was killed', async () => {
    const { dir, remove } = temporaryFolder('containerd', undefined, []);
    const socket = shimSocket(dir, 'starting');
    try {
      // Its bundle has no address yet.
      mkdirSync(join(dir, 'state/io.containerd.runtime.v2.task/k8s.io/starting'), { recursive: true });
      mkdirSync(dirname(socket), { recursive: true });
      writeFileSync(socket, '');
      await cleanUpContainerd(dir, where('runc'));
      expect(existsSync(socket)).toBe(false);
    } finally {
      rmSync(socket, { force: true });
      remove();
    }
  });
});

needs(
  'root',
  'containerd-2.1',
  'runc',
  'image-pause',
)('a containerd whose starter was killed', () => {
  it('is cleaned up when the next one starts', async () => {
    const src = join(import.meta.dirname, '../../devtools/localServices/containerd.ts');
    const starter = `
      import { startContainerd } from '${src}';
      const containerd = await startContainerd({ version: '2.1' });
      const runc = ['--runc-binary', '${where('runc')}', '--runc-root', containerd.dir + '/runc'];
      const args = ['run', '--detach', '--snapshotter', 'native', '--cgroup', containerd.cgroupParent + '/left', ...runc];
      await containerd.ctr([...args, containerd.importedImages.busybox, 'left', 'sleep', '3600']);
      process.kill(process.pid, 'SIGKILL');
    `;
    const killed = spawn(process.execPath, ['--input-type=module', '-e', starter], { stdio: 'inherit' });
    await new Promise((resolve) => killed.once('exit', resolve));
    const owner = killed.pid ?? 0;
    const kinds = new Set(leftovers(owner).map((line) => line.split(' ')[0]));
    expect([...kinds].sort()).toEqual(['control', 'folder', 'mount', 'process']);

    let containerd: LocalContainerd | undefined;
    try {
      containerd = await startContainerd({ version: '2.1' });
      expect(leftovers(owner)).toEqual([]);
    } finally {
      await containerd?.stop();
    }
  });
});

needs(
  'root',
  'kubelet',
  'kube-apiserver',
  'etcd',
  'containerd-2.1',
  'runc',
)('a kubelet', () => {
  it('serves its metrics, changes nothing outside its folder, and cleans up after a kubelet whose starter was killed', async () => {
    const traces = kubeletTraces();
    const source = (name: string) => join(import.meta.dirname, `../../devtools/localServices/${name}.ts`);
    const starter = `
      import { startApiServer } from '${source('apiServer')}';
      import { startContainerd } from '${source('containerd')}';
      import { startKubelet } from '${source('kubelet')}';
      const [api, containerd] = [await startApiServer(), await startContainerd({ version: '2.1' })];
      await startKubelet({ node: 'killed', api, containerd, eventedPleg: false });
      process.kill(process.pid, 'SIGKILL');
    `;
    const killed = spawn(process.execPath, ['--input-type=module', '-e', starter], { stdio: 'inherit' });
    await new Promise((resolve) => killed.once('exit', resolve));
    const owner = killed.pid ?? 0;
    const left = leftovers(owner).filter((line) => line.includes('-kubelet-'));
    expect(left.filter((line) => line.startsWith('folder '))).toHaveLength(1);
    expect(left.filter((line) => line.startsWith('mount '))).toEqual([]);

    const stops: (() => Promise<void>)[] = [];
    try {
      const api = await startApiServer();
      stops.push(() => api.stop());
      const containerd = await startContainerd({ version: '2.1' });
      stops.push(() => containerd.stop());
      const kubelet = await startKubelet({ node: 'next', api, containerd, eventedPleg: true });
      stops.push(() => kubelet.stop());
      expect(await kubelet.metrics()).toMatch(/^kubernetes_feature_enabled\{name="EventedPLEG",.*\} 1$/m);
      expect(leftovers(owner)).toEqual([]);
      expect(kubeletTraces()).toEqual(traces);
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
    expect(leftHere()).toEqual([]);
  });
});
