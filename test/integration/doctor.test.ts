/*
 * `plegwatch doctor`: with everything in order it finds nothing, and for each thing that is broken it names the cure. Cures that are commands are
 * run, and cure.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { startPgBouncer } from '../../devtools/localServices/pgbouncer.ts';
import {
  type LocalPlegwatch,
  type PlegwatchSettings,
  programEnvironment,
  startPlegwatch,
} from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { startRedisCluster } from '../../devtools/localServices/redisCluster.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { putReport } from '../../src/controller/reports/nodeReports.ts';
import { writeUnknown } from '../../src/controller/reports/unknown.ts';
import type { CheckResult } from '../../src/doctor/check.ts';
import { examine as checkAll, hasFailed, written } from '../../src/doctor/doctor.ts';
import { checkReports } from '../../src/doctor/reportChecks.ts';
import { DOCTOR_SETTINGS, type DoctorConfig } from '../../src/doctor/settings.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { NODES, PLEG_REPORTS } from '../../src/kube/object.ts';
import { nodeOf } from '../../src/kube/projection.ts';
import { readOne, variableOf } from '../../src/platform/settings.ts';
import { CLI } from '../support/build.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { build } from '../support/evidenceRow.ts';
import { FakeKubelet, makeAuthority, metricsText, plain, removeAuthority } from '../support/fakeKubelet.ts';
import { newLeftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { DEFINITIONS, installPlegReports } from '../support/plegreports.ts';
import { passes, waitFor } from '../support/waitFor.ts';

const leftHere = newLeftovers();

const SECRET = 'sesame-4b1d';
const CLUSTER = 'test';
const NODE = 'node-1';

interface Examined {
  readonly code: number;
  readonly checks: readonly CheckResult[];
}

/** Runs it as in a pod: the settings are in the environment. */
function doctor(
  settings: PlegwatchSettings,
  ...args: readonly string[]
): Promise<Examined & { stdout: string; stderr: string }> {
  const variables = Object.entries(settings).map(([key, value]) => [variableOf(key), value]);
  const env = { ...programEnvironment(), ...Object.fromEntries(variables) };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CLI, 'doctor', ...args], { env }, (error, stdout, stderr) => {
      if ((stdout + stderr).includes(SECRET)) reject(new Error(`a password is printed: ${stdout}${stderr}`));
      const checks = stdout.startsWith('{') ? JSON.parse(stdout).checks : [];
      resolve({ code: error === null ? 0 : Number(error.code), checks, stdout, stderr });
    });
  });
}

async function byCommand(settings: PlegwatchSettings): Promise<Examined> {
  const { stderr, ...examined } = await doctor(settings, '-o', 'json');
  expect(stderr).toBe('');
  return examined;
}

/** Examines as the command does, in this process: to start another one takes longer than the checks. */
async function examine(settings: PlegwatchSettings): Promise<Examined> {
  const given = new Map(Object.entries(settings));
  const values = Object.entries(DOCTOR_SETTINGS).map(([key, setting]) => [
    key,
    readOne(setting, given.get(key)),
  ]);
  const checks = await checkAll(Object.fromEntries(values) as DoctorConfig);
  const text = written(checks, 'json');
  if (text.includes(SECRET)) throw new Error(`a password is printed: ${text}`);
  return { code: hasFailed(checks) ? 1 : 0, checks };
}

/**
 * Examines until the exit code and what is not well are these: on a busy machine a check may take longer than the few seconds that it has.
 */
function finds(
  settings: PlegwatchSettings,
  code: number,
  wrong: readonly string[],
  how = examine,
): Promise<Examined> {
  return waitFor(`${code} ${wrong}`, async () => {
    const examined = await how(settings);
    expect([examined.code, problems(examined)]).toEqual([code, wrong]);
    return examined;
  });
}

/** Examines until a check says this, for the same reason. */
const says = (
  settings: PlegwatchSettings,
  name: string,
  expected: object,
  how = examine,
): Promise<CheckResult> =>
  waitFor(`${name} says what is expected`, async () => {
    const said = named(await how(settings), name);
    expect(said).toMatchObject(expected);
    return said;
  });

const named = ({ checks }: Examined, name: string): CheckResult | undefined =>
  checks.find((check) => check.name === name);
const problems = ({ checks }: Examined): readonly string[] =>
  checks.filter(({ status }) => status !== 'ok').map(({ name, status }) => `${name} ${status}`);

needs(
  'root',
  'containerd-2.1',
  'redis-server',
  'postgres',
  'pgbouncer',
  'kube-apiserver',
  'etcd',
)('plegwatch doctor', () => {
  const dir = mkdtempSync(join(tmpdir(), 'doctor-'));
  const authority = makeAuthority();
  const stranger = makeAuthority();
  const tokenFile = join(dir, 'token');
  let redis: LocalRedis;
  let admin: Redis;
  let postgres: TestServer;
  let databaseUrl: string;
  let containerd: LocalContainerd;
  let stealing: SimulatedRuntime;
  let kubelet: FakeKubelet;
  let api: LocalApiServer;
  let kube: KubeClient;
  let controller: LocalPlegwatch;
  let agentSettings: PlegwatchSettings;
  let controllerSettings: PlegwatchSettings;

  beforeAll(async () => {
    writeFileSync(tokenFile, 'token');
    // As everywhere but in a pod.
    vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined);
    [redis, postgres, containerd, kubelet, api, stealing] = await Promise.all([
      startRedis({ clusters: [CLUSTER, 'twice', 'shared'] }),
      startServer(),
      startContainerd({ version: '2.1' }),
      FakeKubelet.start(authority),
      startApiServer({ users: { stranger: [] } }),
      startSimulatedRuntime({ socket: join(dir, 'cri.sock'), profile: 'containerd-1.7' }),
    ]);
    admin = new Redis(redis.port);
    databaseUrl = await postgres.database();
    kube = await createKubeClient({ kubeconfig: api.kubeconfig });
    await installPlegReports(kube);
    controller = await startPlegwatch({
      cli: CLI,
      command: 'controller',
      settings: { cluster: CLUSTER, redisUrl: redis.urlOf('controller'), databaseUrl, noKube: 'true' },
    });
    agentSettings = {
      cluster: CLUSTER,
      node: NODE,
      redisUrl: redis.urlOf('agent'),
      criEndpoint: containerd.socket,
      kubeletUrl: kubelet.url.origin,
      kubeletTokenFile: tokenFile,
      kubeletCaFile: authority.caFile,
    };
    controllerSettings = {
      cluster: CLUSTER,
      redisUrl: redis.urlOf('controller'),
      databaseUrl,
      kubeconfig: api.kubeconfig,
      lease: 'default/plegwatch-controller',
    };
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    admin.disconnect();
    kube.close();
    await controller.stop();
    await Promise.all([redis, containerd, kubelet, api, stealing, postgres].map((service) => service.stop()));
    removeAuthority(authority);
    removeAuthority(stranger);
    rmSync(dir, { recursive: true });
    expect(leftHere()).toEqual([]);
  });

  it("finds nothing wrong in an agent's pod where all is well", async () => {
    const examined = await finds(agentSettings, 0, [], byCommand);
    expect(examined.checks.map(({ name }) => name)).toEqual([
      'runtime',
      'runtime rules',
      'subscription',
      'kubelet',
      'redis',
      'redis rights',
      'controller',
    ]);
  });

  it("finds nothing wrong in a controller's pod where all is well", async () => {
    const examined = await finds(controllerSettings, 0, [], byCommand);
    expect(examined.checks.map(({ name }) => name)).toEqual([
      'redis',
      'redis rights',
      'controller',
      'postgres',
      'postgres rights',
      'api server',
      'api rights',
      'crd',
      'reports',
    ]);
  });

  it('prints a line for each check, and below it the cure of what is wrong', async () => {
    await passes(async () => {
      const { stdout, code } = await doctor({ ...agentSettings, criEndpoint: join(dir, 'nothing') });
      expect(code).toBe(1);
      expect(stdout).toMatch(
        /^failed {3}runtime {7}No runtime answers .*\n {23}Start the runtime, .* {2}\[CRI_UNREACHABLE\]\n/,
      );
      expect(stdout).toMatch(
        /^ok {7}redis rights {2}the user plegwatch-test-agent may do what the agent does$/m,
      );
    });
  });

  it('refuses to examine nothing, and a wrong setting, with exit code 2', async () => {
    const nothing = await doctor({});
    expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('Nothing to check')]);
    const wrong = await doctor({ ...agentSettings, relistPeriod: 'often' });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--relist-period')]);
  });

  describe('the check of the program beside it', () => {
    it('says that it is ready, or does not answer', async () => {
      const ready = await finds({ httpAddress: `127.0.0.1:${controller.port}` }, 0, []);
      expect(named(ready, 'program')?.message).toMatch(/is ready$/);
      const absent = await finds({ httpAddress: `127.0.0.1:${await freePort()}` }, 1, ['program failed']);
      expect(named(absent, 'program')?.message).toMatch(/does not answer/);
    });

    it('says that an agent waits for the spool of the agent of another release, and what to do', async () => {
      const spoolDir = join(dir, 'spool');
      const settings = { ...agentSettings, spoolDir };
      const first = await startPlegwatch({ cli: CLI, command: 'agent', settings });
      const httpAddress = `127.0.0.1:${await freePort()}`;
      const variables = Object.entries({ ...settings, httpAddress }).map(([key, value]) => [
        variableOf(key),
        value,
      ]);
      const env = { ...programEnvironment(), ...Object.fromEntries(variables) };
      const second = spawn(process.execPath, [CLI, 'agent'], { env, stdio: 'ignore' });
      try {
        await waitFor('it says why it waits', async () => {
          const examined = await examine({ ...settings, httpAddress });
          expect(problems(examined)).toEqual(['program failed']);
          expect(named(examined, 'program')?.message).toMatch(
            /another agent holds the lock of the spool .* uninstall the other release/,
          );
          return true;
        });
        await finds({ ...settings, httpAddress: `127.0.0.1:${first.port}` }, 0, []);
      } finally {
        second.kill('SIGKILL');
        await first.stop();
      }
    });
  });

  describe('the check of the reports', () => {
    const MINUTE_MS = 60_000;

    it('names Nodes without one, old ones, and that no controller can work', async () => {
      for (const name of ['kept', 'lacking']) {
        const node = await kube.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
        if (name === 'lacking') continue;
        const status = { ...build(), observedAt: `${new Date().toISOString().slice(0, 19)}Z` };
        const { signal } = new AbortController();
        await putReport(kube, name, nodeOf(node, { reported: [], stored: [] }).node, status, signal);
      }
      try {
        await finds(controllerSettings, 0, []);
        const inMinutes = (minutes: number) => checkReports(kube, Date.now() + minutes * MINUTE_MS);
        expect(await inMinutes(3)).toMatchObject({
          status: 'warning',
          message: '1 of 2 Nodes have no report: lacking',
        });
        expect(await inMinutes(8)).toMatchObject({
          status: 'failed',
          message: 'the reports of 1 of 2 Nodes are older than 7 minutes: kept',
        });
        await writeUnknown(kube, () => new Date(), new AbortController().signal);
        const examined = await finds(controllerSettings, 1, ['reports failed']);
        expect(named(examined, 'reports')?.message).toBe(
          'no controller can work, say the reports of 1 of 2 Nodes',
        );
      } finally {
        await kube.delete(PLEG_REPORTS, 'kept');
        for (const name of ['kept', 'lacking']) await kube.delete(NODES, name);
      }
    });

    it('warns that without a Lease a controller leaves them as they are', async () => {
      const { lease: _, ...without } = controllerSettings;
      const examined = await finds(without, 0, ['lease warning']);
      expect(named(examined, 'lease')?.cure).toMatch(/^Set --lease/);
    });
  });

  describe('on a node', () => {
    it('warns that the agent will not subscribe to a runtime that would suffer from it', async () => {
      const examined = await finds({ ...agentSettings, criEndpoint: stealing.socket }, 0, [
        'subscription warning',
      ]);
      expect(named(examined, 'subscription')?.cure).toMatch(/^Upgrade the runtime .*node-safety\.md/);
    });

    it.each([
      ['a kubelet that forbids its metrics', { status: 403 }, /Forbidden/, /^Grant .* get on nodes\/metrics/],
      [
        'a kubelet that refuses the token',
        { status: 401 },
        /Unauthorized/,
        /^Give the agent a token .* webhook authentication/,
      ],
      ['a web server in its place', { text: 'hello' }, /NotMetrics/, /^Correct --kubelet-url/],
    ])(
      'finds %s, and says what to do',
      async (_, {
        status = 200,
        text = metricsText(),
      }: { status?: number; text?: string }, message, cure) => {
        kubelet.answer = plain(text, {}, status);
        try {
          await says(agentSettings, 'kubelet', {
            message: expect.stringMatching(message),
            cure: expect.stringMatching(cure),
          });
          await finds(agentSettings, 1, ['kubelet failed']);
        } finally {
          kubelet.answer = plain(metricsText());
        }
      },
    );
  });

  describe("at a kubelet's certificate", () => {
    it('finds one that another authority signed, if it must be verified', async () => {
      const strict = { ...agentSettings, kubeletIdentity: 'strict', kubeletCaFile: stranger.caFile };
      await says(strict, 'kubelet', {
        message: expect.stringContaining('Tls'),
        cure: expect.stringMatching(/--kubelet-ca-file .*kubelet-metrics\.md/),
      });
      await finds(strict, 1, ['kubelet failed']);
    });

    it('says whether it was verified', async () => {
      const verified = await finds(agentSettings, 0, []);
      expect(named(verified, 'kubelet')?.message).toMatch(/its certificate is verified$/);
      const unverified = await finds({ ...agentSettings, kubeletCaFile: stranger.caFile }, 0, []);
      expect(named(unverified, 'kubelet')?.message).toMatch(/of no known authority, and accepted/);
    });
  });

  describe('at Redis', () => {
    const asUser = (user: string): string => redis.url.replace('://', `://${user}:${SECRET}@`);

    it.each([
      ['agent', () => agentSettings],
      ['controller', () => controllerSettings],
    ])('names what the user of the %s may not do, and the command that grants it', async (user, settings) => {
      await admin.call(
        'ACL',
        'SETUSER',
        user,
        'on',
        `>${SECRET}`,
        '+ping',
        '+multi',
        '+discard',
        '+info',
        '+acl|whoami',
      );
      const refused = await says({ ...settings(), redisUrl: asUser(user) }, 'redis rights', {
        status: 'failed',
        cure: expect.stringContaining(`Run ACL SETUSER ${user} +`),
      });
      const { cure = '' } = refused;
      expect(cure).toMatch(/~\{plegwatch:test:.*\}:/);
      const words = [...cure.replace('Run ', '').matchAll(/'([^']*)'|(\S+)/g)].map(
        ([, a, b]) => a ?? b ?? '',
      );
      await admin.call(words[0] ?? '', ...words.slice(1));
      await finds({ ...settings(), redisUrl: asUser(user) }, 0, []);
    });

    it('leaves no key behind', async () => {
      await examine({ ...agentSettings, ...controllerSettings, redisUrl: redis.url, cluster: 'elsewhere' });
      expect(await admin.keys('*elsewhere*')).toEqual([]);
    });

    it.each([
      ['agent', () => agentSettings],
      ['controller', () => controllerSettings],
    ] as const)(
      'finds nothing that the user of the %s lacks, as redis-acl prints it',
      async (user, settings) => {
        await finds({ ...settings(), redisUrl: redis.urlOf(user) }, 0, []);
      },
    );

    it('warns of a Redis that deletes keys when it is full', async () => {
      await admin.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
      try {
        const examined = await finds(agentSettings, 0, ['redis warning']);
        expect(named(examined, 'redis')?.cure).toMatch(/maxmemory-policy to noeviction/);
      } finally {
        await admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
      }
    });

    it('checks rights on the node of a Redis Cluster that has the key', async () => {
      const cluster = await startRedisCluster();
      try {
        await finds({ ...agentSettings, redisUrl: cluster.urlOf('agent') }, 0, ['controller warning']);
        for (const { port } of cluster.masters) {
          const master = new Redis(port);
          await master.call('ACL', 'SETUSER', 'default', '-hsetnx');
          master.disconnect();
        }
        await says({ ...agentSettings, redisUrl: cluster.url }, 'redis rights', {
          cure: expect.stringMatching(/^Run ACL SETUSER default '\(\+hsetnx( %W~[^ ]*:inbox){3}\)'$/),
        });
      } finally {
        await cluster.stop();
      }
    });

    it('warns of a cluster without a controller', async () => {
      const examined = await finds({ ...agentSettings, redisUrl: redis.url, cluster: 'elsewhere' }, 0, [
        'controller warning',
      ]);
      expect(named(examined, 'controller')?.cure).toMatch(/same --cluster/);
    });

    it('two controllers that lead one cluster are named by the doctor, their logs and a metric until one ends, whatever their Redis and pooler', async () => {
      const elsewhere = await startRedis({ clusters: ['shared'] });
      const { username, password, pathname } = new URL(databaseUrl);
      const users = { [username]: password };
      const bouncer = await startPgBouncer({ postgres: postgres.part.port, users, poolSize: 2 });
      const pooled = `postgres://${username}:${password}@127.0.0.1:${bouncer.port}${pathname}`;
      const { lease: _, ...leadsAlways } = controllerSettings;
      const settings = {
        ...leadsAlways,
        cluster: 'shared',
        redisUrl: redis.urlOf('controller', 'shared'),
      };
      const other = {
        ...{ ...settings, databasePoolMode: 'transaction', databaseUrl: pooled },
        redisUrl: elsewhere.urlOf('controller', 'shared'),
      };
      const start = (each: PlegwatchSettings) =>
        startPlegwatch({ cli: CLI, command: 'controller', settings: each });
      const conflictOf = async (of: LocalPlegwatch) =>
        /^plegwatch_controller_conflict (\d)$/m.exec((await of.ask('/metrics'))?.body ?? '')?.[1];
      const found = async () =>
        (await examine(settings)).checks.find(
          ({ name, status }) => name === 'controller' && status === 'warning',
        );
      const first = await start(settings);
      try {
        const second = await start(other);
        try {
          for (const each of [first, second])
            await waitFor('it sees the other', async () => (await conflictOf(each)) === '1');
          await passes(async () =>
            expect(await found()).toMatchObject({
              message: expect.stringContaining('uses this database'),
              cure: expect.stringMatching(/Uninstall all but one/),
            }),
          );
          for (const each of [first, second]) expect(each.log()).toContain('writes the same reports');
        } finally {
          await second.stop();
        }
        await waitFor('it is alone', async () => (await conflictOf(first)) === '0');
        await passes(async () => expect(await found()).toBeUndefined());
      } finally {
        await first.stop();
        await bouncer.stop();
        await elsewhere.stop();
      }
    });

    it('finds a wrong password, and prints none', async () => {
      const wrong = { ...agentSettings, redisUrl: asUser('nobody') };
      const refused = { code: 'REDIS_REFUSED', cure: expect.stringMatching(/password/) };
      await says(wrong, 'redis', refused, byCommand);
      await finds(wrong, 1, ['redis failed']);
    });
  });

  describe('at Postgres', () => {
    it('finds a database without the schema', async () => {
      const settings = { ...controllerSettings, databaseUrl: await postgres.emptyDatabase() };
      await says(settings, 'postgres', {
        code: 'DATABASE_NOT_MIGRATED',
        cure: expect.stringMatching(/^Run plegwatch migrate/),
      });
      await finds(settings, 1, ['postgres failed']);
    });

    it('names what a role may not do, and the statement that grants it', async () => {
      const roleUrl = await postgres.role(databaseUrl, 'controller');
      const role = new URL(roleUrl).username;
      await query(databaseUrl, 'SELECT store.grant_reader($1)', [role]);
      await finds({ ...controllerSettings, databaseUrl: roleUrl }, 1, ['postgres rights failed']);
      const { cure = '' } = await says({ ...controllerSettings, databaseUrl: roleUrl }, 'postgres rights', {
        message: expect.stringContaining('INSERT on store.container_event'),
      });
      await query(databaseUrl, cure.slice(cure.indexOf('SELECT')).replace(/\.$/, ''));
      await finds({ ...controllerSettings, databaseUrl: roleUrl }, 0, []);
      const other = { ...controllerSettings, redisUrl: redis.url, cluster: 'another', databaseUrl: roleUrl };
      await says(other, 'postgres rights', {
        message: `the role ${role} may not write the cluster another`,
        cure: expect.stringContaining(`SELECT store.grant_controller('${role}', 'another')`),
      });
    });

    it('says whether signatures are required, and names nodes that hold that back', async () => {
      const url = await postgres.database();
      const settings = { cluster: CLUSTER, databaseUrl: url };
      const enrols = { ...settings, agentServiceAccount: 'plegwatch/agent', keySecret: 'plegwatch/keys' };
      const said = (more: PlegwatchSettings, expected: object) => says(more, 'signatures', expected);
      expect(named(await finds(settings, 0, []), 'signatures')).toBeUndefined();
      await said(enrols, { status: 'ok', message: expect.stringContaining('an hour') });
      await query(
        url,
        `INSERT INTO store.node (cluster_id, name, last_seen)
         SELECT cluster_id, 'node-' || i, now() FROM store.cluster, generate_series(1, 7) AS i`,
      );
      const held = '7 of 7 nodes have no valid key or sent unsigned evidence within an hour: ';
      const names = 'node-1, node-2, node-3, node-4, node-5, …';
      await said(enrols, {
        status: 'warning',
        message: `they are not required yet: ${held}${names}`,
        cure: expect.stringContaining('PlegwatchNodeKeyExpiring'),
      });
      await said(
        { ...enrols, attribution: 'accept' },
        {
          status: 'warning',
          message: `unsigned evidence of nodes without a key is stored; ${held}${names}`,
        },
      );
      await query(url, 'UPDATE store.cluster SET signatures_required_since = now()');
      for (const each of [settings, enrols])
        await said(each, {
          status: 'ok',
          message: expect.stringMatching(/^evidence without a signature has been refused since 20.*Z$/),
        });
    });

    it('names nodes under whose name agents of two machines report, with their boots', async () => {
      const url = await postgres.database();
      const settings = { cluster: CLUSTER, databaseUrl: url };
      expect(named(await finds(settings, 0, []), 'agents')).toBeUndefined();
      await query(
        url,
        "INSERT INTO store.node (cluster_id, name, last_seen) SELECT cluster_id, 'node-a', now() FROM store.cluster",
      );
      await query(
        url,
        `INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at,
                                  ack_generation, last_seq, last_seen, first_stored_at, last_new_at, last_batch_at, clock_moved_us)
         SELECT node_id, cluster_id, gen_random_uuid(), i, i, '', 'boot-' || i, 0, timestamptz '2026-11-20 11:00Z' + i * interval '1 hour',
                1, 1, now() + interval '1 hour', now() - interval '1 hour', now(), now(), 0
         FROM store.node, generate_series(1, 2) AS i`,
      );
      await says(settings, 'agents', {
        status: 'warning',
        message:
          'agents of two machines report under one name: node-a (boot boot-1 since 2026-11-20T12:00:00Z, boot boot-2 since 2026-11-20T13:00:00Z)',
        cure: expect.stringContaining('name of its own'),
      });
    });

    it('asks for every right that store.grant_controller grants', async () => {
      const roleUrl = await postgres.role(databaseUrl, 'granted');
      const role = new URL(roleUrl).username;
      await query(databaseUrl, 'SELECT store.grant_controller($1)', [role]);
      const rows = await query(
        databaseUrl,
        `SELECT DISTINCT privilege_type || ' on store.' || table_name AS granted FROM information_schema.column_privileges
         WHERE grantee = $1 AND table_schema = 'store' AND privilege_type <> 'SELECT'
         UNION ALL
         SELECT 'DELETE on store.' || table_name FROM information_schema.role_table_grants
         WHERE grantee = $1 AND table_schema = 'store' AND privilege_type = 'DELETE' ORDER BY 1`,
        [role],
      );
      await query(databaseUrl, `REVOKE ALL ON ALL TABLES IN SCHEMA store FROM ${role}`);
      await query(databaseUrl, `GRANT SELECT ON store.migration TO ${role}`);
      const { message = '' } =
        named(await examine({ ...controllerSettings, databaseUrl: roleUrl }), 'postgres rights') ?? {};
      const asked = message
        .replace(/^.* may not: /, '')
        .split(', ')
        .filter((each) => !each.startsWith('SELECT'));
      expect(asked.sort()).toEqual(rows.map(({ granted }) => String(granted)).sort());
    });
  });

  describe('at the API server', () => {
    it('names what the service account may not do', async () => {
      const settings = { ...controllerSettings, kubeconfig: api.kubeconfigOf('stranger') };
      await says(settings, 'api rights', {
        message: expect.stringMatching(
          /may not: list nodes, .*patch plegreports\/status\.plegwatch\.dev, create events\.events\.k8s\.io, .*, get pods, .*patch leases\.coordination\.k8s\.io plegwatch-controller$/,
        ),
        cure: expect.stringMatching(/ClusterRole/),
      });
      await finds(settings, 1, ['api rights failed']);
    });

    it('finds a cluster without the resource of the reports', async () => {
      await kube.delete(DEFINITIONS, 'plegreports.plegwatch.dev');
      try {
        await says(controllerSettings, 'crd', {
          cure: expect.stringMatching(/^Run the helm upgrade .*kubectl apply --server-side -f crds/),
        });
        await finds(controllerSettings, 1, ['crd failed']);
      } finally {
        await installPlegReports(kube);
      }
    });
  });
});
