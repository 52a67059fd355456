/*
 * The whole system for a test, on real services: Redis, Postgres and, if wanted, an API server with the CRD, all empty at
 * first. Controllers and agents are processes of the built program.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { writeAgentToken } from '../../devtools/localServices/kubeletReading.ts';
import {
  type LocalPlegwatch,
  type PlegwatchSettings,
  programEnvironment,
  startPlegwatch,
} from '../../devtools/localServices/plegwatch.ts';
import {
  CONTROLLER_ROLE,
  createControllerRole,
  type LocalPostgres,
} from '../../devtools/localServices/postgres.ts';
import { run } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { where } from '../../devtools/localServices/where.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { NODES, PLEG_REPORTS } from '../../src/kube/object.ts';
import { millis } from '../../src/protocol/units.ts';
import { migrate } from '../../src/store/migrate.ts';
import { auditCommand } from './auditCommand.ts';
import { CLI } from './build.ts';
import { query, silent } from './database.ts';
import { installPlegReports } from './plegreports.ts';
import { startTestPostgres, usePrepared } from './preparedPostgres.ts';
import { WITHIN_MS, waitFor } from './waitFor.ts';

export const CLUSTER = 'test';

/**
 * Short times, so that tests need not wait: a relist twice a second, a missed event after four seconds. `overdueAfter` stays
 * long: half of it is how long a busy machine may keep an agent from running before that counts as a stall.
 */
const FAST: PlegwatchSettings = {
  relistPeriod: '500ms',
  overdueAfter: '3s',
  missedAfter: '4s',
  spoolFsync: '100ms',
};

/** For a test that counts what a stream delivers: a reader that a busy machine does not run is not killed, which would lose events. */
export const LASTING_READER: PlegwatchSettings = { intervalReaderSilence: '10m' };

/** For a runtime whose events come as late as the machine is busy: that alone makes no event late or missed. */
export const PATIENT: PlegwatchSettings = { lateAfter: '10m', missedAfter: '1m' };

export class System {
  readonly redis: LocalRedis;
  readonly postgres: LocalPostgres;
  /** URL of the database, for a controller: it may write this cluster only, and owns nothing. */
  readonly controllerUrl: string;
  readonly #api: LocalApiServer | null;
  readonly #kube: KubeClient | null;
  readonly #programs: LocalPlegwatch[] = [];
  readonly #dir = mkdtempSync(join(tmpdir(), 'plegwatch-system-'));

  private constructor(
    redis: LocalRedis,
    postgres: LocalPostgres,
    controllerUrl: string,
    api: LocalApiServer | null,
    kube: KubeClient | null,
  ) {
    this.redis = redis;
    this.postgres = postgres;
    this.controllerUrl = controllerUrl;
    this.#api = api;
    this.#kube = kube;
  }

  /** `clusters`: those whose users Redis has. `cli`: the program that migrates; default: these sources. */
  static async start({
    kube,
    clusters = [CLUSTER],
    cli,
  }: {
    kube: boolean;
    clusters?: readonly string[];
    cli?: string;
  }): Promise<System> {
    const [redis, postgres, api] = await Promise.all([
      startRedis({ clusters }),
      startTestPostgres(),
      kube ? startApiServer() : null,
    ]);
    if (cli === undefined) await usePrepared(postgres.url);
    const controllerUrl = await createControllerRole(postgres.url);
    if (cli === undefined) {
      await migrate({
        databaseUrl: postgres.url,
        databaseWait: millis(WITHIN_MS),
        queues: 4,
        controllerRoles: [`${CONTROLLER_ROLE}=${CLUSTER}`],
        log: silent,
      });
    } else {
      await migrateWith(cli, postgres.url);
    }
    const client = api === null ? null : await createKubeClient({ kubeconfig: api.kubeconfig });
    if (client !== null) await installPlegReports(client);
    return new System(redis, postgres, controllerUrl, api, client);
  }

  get api(): LocalApiServer {
    if (this.#api === null) throw new Error('this system has no API server');
    return this.#api;
  }

  get kube(): KubeClient {
    if (this.#kube === null) throw new Error('this system has no API server');
    return this.#kube;
  }

  /** A path in the folder of this system, which `stop` removes. */
  folder(name: string): string {
    return join(this.#dir, name);
  }

  async controller(settings: PlegwatchSettings = {}, cli = CLI): Promise<LocalPlegwatch> {
    const kube = this.#api === null ? { noKube: 'true' } : { kubeconfig: this.#api.kubeconfig };
    return this.#started(
      await startPlegwatch({
        cli,
        command: 'controller',
        settings: {
          cluster: CLUSTER,
          redisUrl: this.redis.urlOf('controller', settings.cluster),
          databaseUrl: this.controllerUrl,
          ...kube,
          ...settings,
        },
      }),
    );
  }

  /** `nodeArgs`: options for Node.js itself. */
  async agent(
    node: string,
    socket: string,
    settings: PlegwatchSettings = {},
    nodeArgs: readonly string[] = [],
    cli = CLI,
  ): Promise<LocalPlegwatch> {
    return this.#started(
      await startPlegwatch({
        cli,
        command: 'agent',
        settings: {
          cluster: CLUSTER,
          node,
          redisUrl: this.redis.urlOf('agent', settings.cluster),
          criEndpoint: `unix://${socket}`,
          spoolDir: this.folder(`spool-${node}`),
          ...FAST,
          ...settings,
        },
        nodeArgs,
      }),
    );
  }

  /** Serves the page to everybody on this machine, and returns where. */
  async ui(port: number): Promise<string> {
    const settings = { databaseUrl: this.postgres.url, pageAddress: `127.0.0.1:${port}` };
    this.#started(await startPlegwatch({ cli: CLI, command: 'ui', settings }));
    return `http://${settings.pageAddress}`;
  }

  async addNode(name: string): Promise<void> {
    await this.kube.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  }

  /** The PLEGReport of a node in Kubernetes. Throws if there is none. */
  async publishedReport(node: string): Promise<ReportStatus> {
    const report = await this.kube.get(PLEG_REPORTS, node);
    if (report?.['status'] === undefined) throw new Error(`${node} has no report`);
    return report['status'] as ReportStatus;
  }

  /** Returns the rows of one statement; `$1`… are the values. */
  sql<R extends Record<string, unknown>>(text: string, ...values: unknown[]): Promise<R[]> {
    return query<R>(this.postgres.url, text, values);
  }

  /** Fails with what the audit printed, unless everything that is stored follows from the rest. */
  async expectNoDifference(): Promise<void> {
    const { code, output } = await auditCommand({ cluster: CLUSTER, databaseUrl: this.postgres.url });
    if (code !== 0) throw new Error(`plegwatch audit exited with ${code}:\n${output}`);
  }

  /**
   * Periods of the whole history that neither evidence nor a gap covers, of one node or of all. Batches on their way are waited for: one may end
   * between the end of a session and the gap after it.
   */
  async undeclaredGaps(node: string | null = null): Promise<Record<string, unknown>[]> {
    const text = 'SELECT * FROM plegwatch.undeclared_gaps() WHERE $1::text IS NULL OR node = $1';
    let rows = await this.sql(text, node);
    const declared = async () => {
      rows = await this.sql(text, node);
      return rows.length === 0;
    };
    if (rows.length > 0) await waitFor('every period is declared', declared).catch(() => undefined);
    return rows;
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return run(where('kubectl'), ['--kubeconfig', this.api.kubeconfig, ...args]);
  }

  /** A file with the token of an agent. Call it once. */
  async agentToken(): Promise<string> {
    const file = this.folder('agent-token');
    await writeAgentToken(file, (...args) => this.kubectl(...args));
    return file;
  }

  /** Ends one program before the system ends. */
  async end(program: LocalPlegwatch): Promise<void> {
    await program.stop();
  }

  async stop(): Promise<void> {
    for (const program of this.#programs.reverse()) await program.stop();
    this.#kube?.close();
    await Promise.all([this.redis.stop(), this.postgres.stop(), this.#api?.stop()]);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #started(program: LocalPlegwatch): LocalPlegwatch {
    this.#programs.push(program);
    return program;
  }
}

/** Migrates a database with a built program, as its owner. */
export async function migrateWith(cli: string, databaseUrl: string): Promise<void> {
  const roles = `${CONTROLLER_ROLE}=${CLUSTER}`;
  await run(process.execPath, [cli, 'migrate', '--controller-roles', roles], {
    env: { ...programEnvironment(), PLEGWATCH_DATABASE_URL: databaseUrl },
  });
}

/** The answer of a program, however long a busy machine takes; null if it does not run. */
export const answerOf = (
  program: LocalPlegwatch,
  path: Parameters<LocalPlegwatch['ask']>[0],
): ReturnType<LocalPlegwatch['ask']> =>
  waitFor(
    `${path} is answered`,
    async () => (await program.ask(path)) ?? (program.running() ? undefined : null),
  );

/** The value of a metric by its full name; undefined if it is absent, or the program does not run. */
export async function metric(program: LocalPlegwatch, name: string): Promise<number | undefined> {
  const answer = await answerOf(program, '/metrics');
  const line = answer?.body.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}
