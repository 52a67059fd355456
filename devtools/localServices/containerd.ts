/*
 * A real containerd of one's own, of three versions, beside whatever runtime the machine has: own folders, own socket,
 * own runc state, images imported from files.
 *
 * containerd's shims and the containers below them outlive it by design, so the end takes more than stopping one
 * process. `sweep` removes, by what the folder itself says, everything that belongs to it: shims, containers, control
 * groups, mounts, sockets. It also runs for folders whose owner was killed, when the next containerd is started.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PlegwatchError } from '../../src/platform/errors.ts';
import { criAnswers } from './answers.ts';
import { run, startProcess, waitFor } from './process.ts';
import { abandoned, scratch } from './scratch.ts';
import { keepService, type Service } from './service.ts';
import { cgroupOf, sweep } from './sweep.ts';
import { type ContainerdVersion, where } from './where.ts';

export interface ContainerdPart extends Service {
  /** The path of the CRI's socket; the endpoint is `unix://` and this. */
  readonly socket: string;
  readonly version: ContainerdVersion;
  /** Names to use in pod and container settings; nothing needs to be pulled. */
  readonly importedImages: { readonly pause: string; readonly busybox: string };
  readonly dir: string;
  /** A control group that goes away with it: put it into LinuxPodSandboxConfig.cgroup_parent. */
  readonly cgroupParent: string;
  /** Runs `ctr` of the same version in the namespace of the CRI; gives its standard output. */
  ctr(args: readonly string[]): Promise<string>;
}

export interface ContainerdOptions {
  readonly version: ContainerdVersion;
  /** Where everything is, an absolute and short path; a temporary folder when not said. A folder of the caller's is kept. */
  readonly dir?: string;
}

const IMAGES = { pause: 'plegwatch.local/pause:1', busybox: 'plegwatch.local/busybox:1' } as const;
/** The CRI keeps its pods in this namespace of containerd. */
const NAMESPACE = 'k8s.io';
const KIND = 'containerd';
/** Pods here use the network of the host; a kubelet's Node is Ready only where another is set up. No plugin is ever run. */
const NETWORK = { cniVersion: '0.4.0', name: 'unused', plugins: [{ type: 'loopback' }] };

/** Starts containerd and imports the images; returns when the CRI has them (about 3 s). Needs root. */
export async function startContainerd(options: ContainerdOptions): Promise<ContainerdPart> {
  if (process.getuid?.() !== 0) {
    throw new PlegwatchError('PART_FAILED', 'containerd can only be started by root.', 'Run as root.');
  }
  const { version } = options;
  const command = where(`containerd-${version}`);
  const runc = where('runc');
  const images = [where('image-pause'), where('image-busybox')];
  const left = abandoned(KIND);
  for (const folder of left) await sweep(folder, runc);
  const place = scratch(KIND, options.dir, left);
  const { dir } = place;
  // Container files are below; nobody else has business there.
  chmodSync(dir, 0o711);
  const socket = join(dir, 'containerd.sock');
  const configFile = join(dir, 'config.toml');
  writeFileSync(configFile, configuration(version, dir, runc));
  mkdirSync(join(dir, 'cni', 'net.d'), { recursive: true });
  writeFileSync(join(dir, 'cni', 'net.d', '10-host.conflist'), JSON.stringify(NETWORK));

  const ctr = (args: readonly string[]) =>
    run(where(`ctr-${version}`), ['--address', socket, '--namespace', NAMESPACE, ...args]);
  const service = await keepService(
    () =>
      startProcess({
        name: `containerd ${version}`,
        command,
        args: ['--config', configFile],
        cwd: dir,
        // The shim of the same version, before any the machine has.
        env: {
          ...process.env,
          PATH: `${dirname(where(`containerd-shim-${version}`))}:${process.env['PATH'] ?? ''}`,
        },
        logFile: join(dir, 'containerd.log'),
        ready: () => criAnswers(socket),
      }),
    async () => {
      await sweep(dir, runc);
      place.remove();
    },
  );
  try {
    await importImages(ctr, version, images);
  } catch (error) {
    await service.stop();
    throw error;
  }
  const cgroupParent = cgroupOf(dir);
  return Object.assign(service, { socket, version, importedImages: IMAGES, dir, cgroupParent, ctr });
}

async function importImages(
  ctr: (args: readonly string[]) => Promise<string>,
  version: ContainerdVersion,
  files: readonly string[],
): Promise<void> {
  // 1.6 knows no other way than the local one, and no flag for it.
  const local = version === '1.6' ? [] : ['--local'];
  for (const file of files) await ctr(['images', 'import', ...local, '--snapshotter', 'native', file]);
  // The CRI takes notice of an image a moment after it is there, and labels it.
  await waitFor('the CRI knows the imported images', 20_000, async () => {
    const lines = (await ctr(['images', 'ls'])).split('\n');
    return Object.values(IMAGES).every((name) =>
      lines.some((line) => line.startsWith(`${name} `) && line.includes('io.cri-containerd.image=managed')),
    );
  });
}

function configuration(version: ContainerdVersion, dir: string, runc: string): string {
  const modern = version === '2.1';
  const runtime = modern ? 'io.containerd.cri.v1.runtime' : 'io.containerd.grpc.v1.cri';
  const sandbox = modern
    ? `
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${IMAGES.pause}"
`
    : '';
  const older = modern ? '' : `  sandbox_image = "${IMAGES.pause}"\n`;
  const snapshotter = modern ? '' : '  snapshotter = "native"\n';
  // Plugins that have a place of their own outside our folder, or that only fill the log with why they do not load.
  const unwanted = ['nri.v1.nri', 'internal.v1.opt', 'internal.v1.tracing'].concat(
    ['aufs', 'blockfile', 'btrfs', 'devmapper', 'erofs', 'zfs'].map((name) => `snapshotter.v1.${name}`),
  );
  return `version = ${modern ? 3 : 2}
root = "${dir}/root"
state = "${dir}/state"
disabled_plugins = [${unwanted.map((name) => `"io.containerd.${name}"`).join(', ')}]

[grpc]
  address = "${dir}/containerd.sock"
[ttrpc]
  address = "${dir}/containerd.sock.ttrpc"
${sandbox}
[plugins."${runtime}"]
${older}  enable_selinux = false
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."${runtime}".containerd]
${snapshotter}  default_runtime_name = "runc"
[plugins."${runtime}".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."${runtime}".containerd.runtimes.runc.options]
  BinaryName = "${runc}"
  Root = "${dir}/runc"
  SystemdCgroup = false
[plugins."${runtime}".cni]
  ${modern ? `bin_dirs = ["${dir}/cni/bin"]` : `bin_dir = "${dir}/cni/bin"`}
  conf_dir = "${dir}/cni/net.d"
`;
}
