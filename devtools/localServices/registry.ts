/*
 * A registry on loopback, without TLS and users, which keeps what is pushed to it until it is stopped.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type LocalService, startService } from './localService.ts';
import { freePort, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalRegistry extends LocalService {
  /** Host and port: what names of images begin with. */
  readonly host: string;
}

export async function startRegistry(): Promise<LocalRegistry> {
  const command = where('registry');
  const host = `127.0.0.1:${await freePort()}`;
  const place = temporaryFolder('registry', undefined);
  const config = join(place.dir, 'config.yaml');
  const storage = { filesystem: { rootdirectory: join(place.dir, 'storage') } };
  writeFileSync(config, stringify({ version: 0.1, log: { level: 'warn' }, storage, http: { addr: host } }));
  const service = await startService(
    () =>
      startProcess({
        name: 'registry',
        command,
        args: ['serve', config],
        logFile: join(place.dir, 'registry.log'),
        ready: async () => (await fetch(`http://${host}/v2/`, { signal: AbortSignal.timeout(1_000) })).ok,
      }),
    async () => place.remove(),
  );
  return Object.assign(service, { host });
}
