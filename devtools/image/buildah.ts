/*
 * Runs buildah with a store of its own, which is removed afterwards. Only files are copied into images, so that buildah needs neither
 * mounts nor privileges: without root it runs as root of a user namespace that has no other user, which is enough.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programFailed } from '../localServices/process.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { where } from '../localServices/where.ts';

/**
 * Runs a command of buildah and returns what it prints. Names of images need a registry, such as localhost: for the others it looks for
 * aliases in files of the machine. Throws PROGRAM_FAILED.
 */
export type Buildah = (command: readonly string[], ...args: readonly string[]) => string;

/** `dir` is a folder for the work, which is removed afterwards as well. Throws PROGRAM_MISSING. */
export function withBuildah<T>(work: (buildah: Buildah, dir: string) => T): T {
  const program = where('buildah');
  const isRoot = process.getuid?.() === 0;
  const { dir, remove } = temporaryFolder('image', undefined);
  const [home, policy] = [join(dir, 'buildah'), join(dir, 'policy.json')];
  const options = [`--root=${home}/store`, `--runroot=${home}/run`, '--storage-driver=vfs'];
  // Neither variables nor settings of this machine: they would change the image.
  const env = {
    PATH: process.env['PATH'],
    ...{ CONTAINERS_CONF: '/dev/null', CONTAINERS_REGISTRIES_CONF: '/dev/null' },
    ...{ HOME: home, TMPDIR: home, XDG_RUNTIME_DIR: home, XDG_DATA_HOME: home },
    // As buildah says to itself in a user namespace: then it asks for no range of users, and writes nothing to /var/lib.
    ...{ _CONTAINERS_USERNS_CONFIGURED: 'done', _CONTAINERS_ROOTLESS_UID: '1' },
  };
  const buildah: Buildah = (command, ...args) => {
    const line = [program, ...options, ...command, `--signature-policy=${policy}`, '--quiet', ...args];
    const [file = '', ...rest] = isRoot ? line : ['unshare', '--map-root-user', ...line];
    try {
      return execFileSync(file, rest, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
    } catch (error) {
      const cure = isRoot
        ? ''
        : ' Without root, buildah needs user namespaces; run it as root where they are forbidden.';
      throw programFailed(`buildah ${command.join(' ')} failed.`, `See the lines above.${cure}`, error);
    }
  };
  try {
    mkdirSync(home);
    // Nothing is pulled: there is nothing to trust.
    writeFileSync(policy, '{"default":[{"type":"insecureAcceptAnything"}]}');
    return work(buildah, dir);
  } finally {
    // Roots of images are folders that nobody may write to.
    execFileSync('chmod', ['-R', 'u+w', dir]);
    remove();
  }
}
