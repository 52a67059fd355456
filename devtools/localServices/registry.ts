/*
 * A registry without TLS and users, on loopback or in a network of a cluster, which keeps what is pushed to it until it is stopped.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type LocalService, startService } from './localService.ts';
import { freePort, run, type ServiceNetwork, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalRegistry extends LocalService {
  /** Host and port: what names of images begin with. */
  readonly host: string;
  /** Pushes an archive in the OCI layout, with the images of all platforms, as `name`, which has a tag. */
  push(archive: string, name: string): Promise<void>;
}

export interface RegistryOptions {
  /** Where it stores and logs. Default: a temporary folder. */
  readonly dir?: string;
  /** Listens there, and in the network namespace of the process `of`. Default: on a free port of this machine's loopback. */
  readonly network?: ServiceNetwork;
}

export async function startRegistry({ dir, network }: RegistryOptions = {}): Promise<LocalRegistry> {
  const command = where('registry');
  const { address, port, of } = network ?? { address: '127.0.0.1', port: await freePort() };
  const host = `${address}:${port}`;
  const place = temporaryFolder('registry', dir);
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
        networkOf: of,
        ready: async () => {
          await run('bash', ['-c', `: < /dev/tcp/${address}/${port}`], { networkOf: of });
          return true;
        },
      }),
    async () => place.remove(),
  );
  return Object.assign(service, {
    host,
    async push(archive: string, name: string) {
      const copy = ['copy', '--all', '--quiet', '--dest-tls-verify=false'];
      await run(
        where('skopeo'),
        ['--insecure-policy', ...copy, `oci-archive:${archive}`, `docker://${host}/${name}`],
        { networkOf: of },
      );
    },
  });
}
