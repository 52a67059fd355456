/*
 * A real containerd, Redis and Postgres, and the built controller, which stores an agent's records so that they do not fill
 * its spool.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type LocalContainerd, startContainerd } from '../devtools/localServices/containerd.ts';
import type { LocalService } from '../devtools/localServices/localService.ts';
import { startPlegwatch } from '../devtools/localServices/plegwatch.ts';
import { CONTROLLER_ROLE, createControllerRole, startPostgres } from '../devtools/localServices/postgres.ts';
import { run } from '../devtools/localServices/process.ts';
import { startRedis } from '../devtools/localServices/redis.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const CLUSTER = 'bench';

export interface BenchSystem {
  readonly containerd: LocalContainerd;
  /** As an agent. */
  readonly redisUrl: string;
  /** A folder that `stop` removes. */
  readonly dir: string;
  stop(): Promise<void>;
}

export async function startSystem(): Promise<BenchSystem> {
  const started: LocalService[] = [];
  const dir = mkdtempSync(join(tmpdir(), 'plegwatch-bench-'));
  const stop = async () => {
    for (const service of started.reverse()) await service.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  const keep = <S extends LocalService>(service: S): S => {
    started.push(service);
    return service;
  };
  try {
    const redis = keep(await startRedis({ clusters: [CLUSTER] }));
    const postgres = keep(await startPostgres());
    const cli = join(ROOT, 'dist', 'cli.js');
    const databaseUrl = await createControllerRole(postgres.url);
    const grant = ['--controller-roles', `${CONTROLLER_ROLE}=${CLUSTER}`];
    await run(process.execPath, [cli, 'migrate', '--database-url', postgres.url, ...grant]);
    const redisUrl = redis.urlOf('controller', CLUSTER);
    const settings = { cluster: CLUSTER, redisUrl, databaseUrl, noKube: 'true' };
    keep(await startPlegwatch({ cli, command: 'controller', settings }));
    const containerd = keep(await startContainerd({ version: '2.1' }));
    return { containerd, redisUrl: redis.urlOf('agent', CLUSTER), dir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
