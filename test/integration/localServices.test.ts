/* The real parts that everything below test/ runs on: each starts, survives what tests do to it, and leaves nothing. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type ApiServerPart, startApiServer } from '../../devtools/localServices/apiserver.ts';
import { type ContainerdPart, startContainerd } from '../../devtools/localServices/containerd.ts';
import { startKubelet } from '../../devtools/localServices/kubelet.ts';
import { startPostgres } from '../../devtools/localServices/postgres.ts';
import { freePort, startProcess, waitFor } from '../../devtools/localServices/process.ts';
import { startRedis } from '../../devtools/localServices/redis.ts';
import { shimSockets } from '../../devtools/localServices/sweep.ts';
import {
  type ContainerdVersion,
  PartMissing,
  type PartName,
  where,
} from '../../devtools/localServices/where.ts';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { drivePods } from '../support/pods.ts';

afterEach(() => expect(leftovers()).toEqual([]));

describe('a process', () => {
  const dir = mkdtempSync(join(tmpdir(), 'process-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  let logs = 0;
  const log = () => join(dir, `${++logs}.log`);

  it('that ends at its start is an error that shows the end of its log', async () => {
    const starting = startProcess({
      name: 'false start',
      command: '/bin/sh',
      args: ['-c', 'echo the reason >&2; exit 3'],
      logFile: log(),
      ready: async () => false,
    });
    await expect(starting).rejects.toThrow(/false start ended at its start[\s\S]*the reason/);
  });

  it('that ignores SIGTERM is killed after its deadline', async () => {
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

  it('that is frozen can be stopped', async () => {
    const process = await startProcess({ name: 'frozen', command: 'sleep', args: ['60'], logFile: log() });
    process.kill('SIGSTOP');
    await expect(process.stop()).resolves.toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('is not in the process group that Ctrl-C on the terminal goes to', async () => {
    const process = await startProcess({ name: 'apart', command: 'sleep', args: ['60'], logFile: log() });
    const [, group] = /\) \S+ \d+ (\d+) /.exec(readFileSync(`/proc/${process.pid}/stat`, 'utf8')) ?? [];
    expect(group).toBe(`${process.pid}`);
    await process.stop();
  });

  it('does not outlive a starter that is killed', async () => {
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
    await waitFor('the orphan is gone', 5_000, () => !existsSync(`/proc/${pid}/exe`));
  });

  it('gets a port that nobody listens on', async () => {
    const ports = new Set(await Promise.all([freePort(), freePort(), freePort()]));
    expect(ports.size).toBe(3);
  });
});

describe('a part', () => {
  it('that is not prepared names the command that brings it', () => {
    const script = join(import.meta.dirname, '../../devtools/localServices/where');
    const env = { ...process.env, PLEGWATCH_CACHE: '/nonexistent' };
    const { status, stderr } = spawnSync(script, ['kubelet'], { env, encoding: 'utf8' });
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining('run: devtools/localServices/prepare kubernetes\n'),
    ]);
  });

  it('that nobody knows is an error too', () => {
    expect(() => where('no-such-part' as PartName)).toThrow(PartMissing);
  });
});

needs('redis-server')('Redis', () => {
  it('refuses writes when it is full, and comes back empty after a kill', async () => {
    const part = await startRedis({ args: ['--maxmemory', '2mb'] });
    try {
      const client = new Redis(part.url);
      client.on('error', () => {});
      await client.set('kept', 'no');
      await expect(
        client.set('big', 'x'.repeat(4_000_000)).then(() => client.set('more', 'x')),
      ).rejects.toThrow('OOM');
      const first = part.pid;
      await part.kill();
      expect(part.running()).toBe(false);
      await part.restart();
      expect(part.pid).not.toBe(first);
      expect(await client.get('kept')).toBeNull();
      client.disconnect();
    } finally {
      await part.stop();
    }
  });

  it('stays in a folder of the caller', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'redis-'));
    const part = await startRedis({ dir });
    await part.stop();
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

  it('keeps what was committed through a kill -9 in the middle of work', async () => {
    const part = await startPostgres();
    try {
      await ask(part.url, 'create table kept (n int); insert into kept values (42)');
      const busy = new pg.Client(part.url);
      busy.on('error', () => {});
      await busy.connect();
      const broken = expect(busy.query('select pg_sleep(60)')).rejects.toThrow();
      await part.kill();
      await broken;
      await part.restart();
      expect(await ask(part.url, 'select n from kept')).toEqual([{ n: 42 }]);
    } finally {
      await part.stop();
    }
  });

  it('takes settings and wants the password', async () => {
    const part = await startPostgres({ settings: { fsync: 'off' } });
    try {
      expect(await ask(part.url, 'show fsync')).toEqual([{ fsync: 'off' }]);
      const wrong = new URL(part.url);
      wrong.password = 'wrong';
      await expect(ask(wrong.href, 'select 1')).rejects.toThrow('password authentication failed');
    } finally {
      await part.stop();
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

  const status = (part: ApiServerPart, path: string, token: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      get(`${part.url}${path}`, { ca: part.ca, agent: false, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).once('error', reject);
    });

  it('knows its users, issues tokens to service accounts, and keeps its objects through kills', async () => {
    const part = await startApiServer({ users: { visitor: ['visitors'] } });
    try {
      expect(await status(part, '/api/v1/nodes', part.token)).toBe(200);
      expect(await status(part, '/api/v1/nodes', 'wrong')).toBe(401);
      expect(kubectl(part.kubeconfigOf('visitor'), 'get', 'nodes').stderr).toContain('"visitor" cannot list');

      kubectl(part.kubeconfig, 'create', 'serviceaccount', 'robot');
      const token = kubectl(part.kubeconfig, 'create', 'token', 'robot').stdout.trim();
      expect(await status(part, '/api/v1/nodes', token)).toBe(403);

      await part.kill();
      await part.etcd.kill();
      await part.etcd.restart();
      await part.restart();
      expect(kubectl(part.kubeconfig, 'get', 'serviceaccount', 'robot', '-o', 'name').stdout).toBe(
        'serviceaccount/robot\n',
      );
    } finally {
      await part.stop();
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
    it('runs pods, keeps them through a kill, and takes everything with it', async () => {
      const part = await startContainerd({ version });
      const pods = drivePods(part);
      let sockets: string[] = [];
      try {
        expect(await part.ctr(['version'])).toMatch(new RegExp(`Version: +${version}\\.`));
        await pods.end(await pods.run('short'));
        const long = await pods.run('long');
        await part.kill();
        await part.restart();
        expect(await pods.counts()).toEqual({ sandboxes: 1, containers: 1 });
        await pods.stopContainer(long);
        await pods.run('left-running');
        sockets = shimSockets(part.dir);
        expect(sockets).toHaveLength(2);
      } finally {
        pods.close();
        await part.stop();
      }
      expect(sockets.filter(existsSync)).toEqual([]);
    });
  });
}

needs(
  'root',
  'containerd-2.1',
  'runc',
  'image-pause',
)('containerd of a starter that was killed', () => {
  it('is swept up by the next one that is started', async () => {
    const src = join(import.meta.dirname, '../../devtools/localServices/containerd.ts');
    const starter = `
      import { startContainerd } from '${src}';
      const part = await startContainerd({ version: '2.1' });
      const runc = ['--runc-binary', '${where('runc')}', '--runc-root', part.dir + '/runc'];
      const args = ['run', '--detach', '--snapshotter', 'native', '--cgroup', part.cgroupParent + '/left', ...runc];
      await part.ctr([...args, part.importedImages.busybox, 'left', 'sleep', '3600']);
      process.kill(process.pid, 'SIGKILL');
    `;
    const killed = spawn(process.execPath, ['--input-type=module', '-e', starter], { stdio: 'inherit' });
    await new Promise((resolve) => killed.once('exit', resolve));
    const owner = killed.pid ?? 0;
    const kinds = new Set(leftovers(owner).map((line) => line.split(' ')[0]));
    expect([...kinds].sort()).toEqual(['control', 'folder', 'mount', 'process']);

    let part: ContainerdPart | undefined;
    try {
      part = await startContainerd({ version: '2.1' });
      expect(leftovers(owner)).toEqual([]);
    } finally {
      await part?.stop();
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
  it('tells its metrics, and what one of a starter that was killed has left is removed by the next', async () => {
    const part = (name: string) => join(import.meta.dirname, `../../devtools/localServices/${name}.ts`);
    const starter = `
      import { startApiServer } from '${part('apiserver')}';
      import { startContainerd } from '${part('containerd')}';
      import { startKubelet } from '${part('kubelet')}';
      const [api, containerd] = [await startApiServer(), await startContainerd({ version: '2.1' })];
      await startKubelet({ node: 'killed', api, containerd, eventedPleg: false });
      process.kill(process.pid, 'SIGKILL');
    `;
    const killed = spawn(process.execPath, ['--input-type=module', '-e', starter], { stdio: 'inherit' });
    await new Promise((resolve) => killed.once('exit', resolve));
    const owner = killed.pid ?? 0;
    expect(leftovers(owner).filter((line) => /^mount .*-kubelet-/.test(line))).toHaveLength(1);

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
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
    expect(leftovers()).toEqual([]);
  });
});
