/*
 * The chart's CronJob of a lake: as it is rendered, and run with the rendered arguments and environment on databases of a test, with temporary folders
 * for its volumes.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LAKE_VIEWS } from '../../src/analysis/export/views.ts';
import { agentIncarnation } from '../support/batches.ts';
import {
  FLEET,
  LAKE,
  type PodSpec,
  pick,
  podOf,
  podsOf,
  render,
  secretOf,
  type Values,
  withHome,
} from '../support/chart.ts';
import { plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence } from '../support/evidence.ts';
import { emptyFleet, federateGroups } from '../support/fleetDatabase.ts';
import { needs } from '../support/needs.ts';

withHome();

const DAY_MS = 86_400_000;
const YESTERDAY = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
const NOON_AGO_MS = Date.now() - Date.parse(`${YESTERDAY}T12:00:00Z`);
const lakePod = async (values: Values): Promise<PodSpec> => podOf(await render(values), 'plegwatch-lake');

needs('helm')('the CronJob of a lake', () => {
  test('is there where it is asked for, never runs twice at once, and reaches databases only', async () => {
    const objects = await render(LAKE);
    expect([...podsOf(objects).keys()]).toEqual(['plegwatch-lake']);
    expect(podsOf(await render(FLEET)).has('plegwatch-lake')).toBe(false);
    expect(pick(objects, 'CronJob', 'plegwatch-lake').spec).toMatchObject({
      schedule: '25 0 * * *',
      concurrencyPolicy: 'Forbid',
    });
    expect(pick(objects, 'NetworkPolicy', 'plegwatch-lake').spec).toMatchObject({
      ingress: [],
      egress: [{ ports: expect.arrayContaining([{ port: 5432 }, { port: 6432 }]) }],
    });
  });

  test('has no token and no privileges, and may write to its volume and nowhere else', async () => {
    const { automountServiceAccountToken, securityContext, containers, volumes } = await lakePod(LAKE);
    const [{ securityContext: own, volumeMounts }] = containers;
    expect(automountServiceAccountToken).toBe(false);
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532, fsGroup: 65_532 });
    expect(own).toEqual({
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    });
    expect(volumeMounts.filter(({ readOnly }) => readOnly !== true)).toEqual([
      { name: 'lake', mountPath: '/lake' },
    ]);
    expect(volumes).toContainEqual({ name: 'lake', persistentVolumeClaim: { claimName: 'lake' } });
  });

  test('has a database of its own, or that of the controller', async () => {
    const database = { existingSecret: 'reader', existingSecretKeys: { url: 'uri' } };
    const own = await lakePod({ ...LAKE, lake: { ...Object(LAKE['lake']), database } });
    const items = [{ key: 'uri', path: 'url' }];
    expect(secretOf(own, 'lake-database')).toEqual({ name: 'reader', items });
    expect(secretOf(await lakePod(LAKE), 'lake-database')).toEqual({ name: 'owner' });
  });

  test('has the account that is named, and no other environment than the command has settings', async () => {
    const lake = { ...Object(LAKE['lake']), serviceAccountName: 'of-the-bucket' };
    const { serviceAccountName, containers } = await lakePod({ ...LAKE, lake });
    expect(serviceAccountName).toBe('of-the-bucket');
    expect(containers[0].env.map(({ name }) => name)).toEqual([
      ...['PLEGWATCH_DATABASE_SECRET_DIR', 'PLEGWATCH_DATABASE_POOL_MODE', 'PLEGWATCH_LOG_LEVEL'],
    ]);
  });

  test('has the annotations that are named, as a driver that mounts a bucket needs them', async () => {
    const podAnnotations = { 'gke-gcsfuse/volumes': 'true' };
    const objects = await render({ ...LAKE, lake: { ...Object(LAKE['lake']), podAnnotations } });
    expect(pick(objects, 'CronJob', 'plegwatch-lake').spec).toMatchObject({
      jobTemplate: { spec: { template: { metadata: { annotations: podAnnotations } } } },
    });
  });
});

needs('helm', 'postgres')('a run of the CronJob of a lake', () => {
  let server: TestServer;
  let dir: string;

  const database = async () => {
    const databaseUrl = await server.database();
    const agent = agentIncarnation('node-a', 1, NOON_AGO_MS);
    await commitAll(databaseUrl, [agent.batch(1, evidence())]);
    return databaseUrl;
  };
  const lakeIn = (folder: string) => join(dir, folder, 'lake');

  /** Runs it with `url` in its Secret. Its mounts are in the folder. */
  async function run(folder: string, url: string, lake: Values = {}) {
    const [{ args, env, volumeMounts }] = (
      await lakePod({ ...LAKE, lake: { ...Object(LAKE['lake']), ...lake } })
    ).containers;
    const paths = volumeMounts.map(({ mountPath }) => String(mountPath));
    const mounted = (text: string) =>
      paths.reduce((known, path) => known.replace(path, join(dir, folder, path)), text);
    for (const path of paths) mkdirSync(mounted(path), { recursive: true });
    const variables = Object.fromEntries(env.map(({ name, value = '' }) => [name, mounted(value)]));
    const secretDir = variables['PLEGWATCH_DATABASE_SECRET_DIR'] ?? '';
    expect(secretDir).toBe(mounted('/etc/plegwatch/lake-database'));
    writeFileSync(join(secretDir, 'url'), `${url}\n`);
    return plegwatch(args.map(mounted), variables);
  }

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'plegwatch-lake-job-'));
    server = await startServer();
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  test('exports the days of every view that the queries in lake/ need', async () => {
    const ended = await run('all', await server.reader(await database()), { days: 2 });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(lakeIn('all'))).toEqual(LAKE_VIEWS);
    for (const view of LAKE_VIEWS) {
      const days = readdirSync(join(lakeIn('all'), view, 'cluster=test'));
      expect([view, days]).toEqual([view, expect.arrayContaining(['_manifest.json', `day=${YESTERDAY}`])]);
    }
    expect(ended.stdout).toMatch(
      new RegExp(`^container_events/cluster=test/day=${YESTERDAY}: [1-9]\\d* rows?$`, 'm'),
    );
  });

  test('exports only the views and days that are asked for, also as a controller', async () => {
    const databaseUrl = await database();
    const controller = await server.role(databaseUrl, 'controller');
    await query(databaseUrl, 'SELECT store.grant_controller($1)', [new URL(controller).username]);
    const views = ['findings', 'gaps'];
    const ended = await run('some', controller, { views, days: 1 });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout.match(/^\w+\/cluster=test/gm)).toEqual(views.map((view) => `${view}/cluster=test`));
  });

  test('exports the clusters of all groups where the database is that of a fleet', async () => {
    const [east, west] = [await database(), await database()];
    await query(west, "UPDATE store.cluster SET name = 'west'");
    const fleet = await emptyFleet(server);
    await federateGroups(fleet, { east: await server.reader(east), west: await server.reader(west) });
    expect(await run('fleet', fleet, { days: 2 })).toMatchObject({ code: 0, stderr: '' });
    for (const view of LAKE_VIEWS)
      expect([view, readdirSync(join(lakeIn('fleet'), view))]).toEqual([
        view,
        ['cluster=test', 'cluster=west'],
      ]);
  });
});
