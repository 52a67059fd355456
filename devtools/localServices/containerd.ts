/*
 * A containerd beside whatever runtime the machine has, in one of six versions: with its own folders, socket and runc
 * state, and with images imported from files.
 *
 * containerd's shims and their containers outlive it by design, so stopping the process is not enough.
 * `cleanUpContainerd` removes what the folder says belongs to it: shims, containers, control groups, mounts and sockets.
 * The next start also does this for folders whose owner was killed.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PlegwatchError } from '../../src/platform/errors.ts';
import { cgroupOf, cleanUpContainerd } from './containerdCleanup.ts';
import { hasImages, isCriReady } from './criReadiness.ts';
import { type LocalService, startService } from './localService.ts';
import { type Machine, startInMachine, startMachine } from './machine.ts';
import { type ProcessOptions, type RunningProcess, run, startProcess, waitFor } from './process.ts';
import { abandonedFolders, temporaryFolder } from './temporaryFolder.ts';
import { type ContainerdVersion, type ProgramName, where } from './where.ts';

export interface LocalContainerd extends LocalService {
  /** The path of the CRI socket; the endpoint is `unix://` and this path. */
  readonly socket: string;
  readonly version: ContainerdVersion;
  /** Its version from the next restart on: one of the same major version. Its pods go on. */
  setVersion(version: ContainerdVersion): void;
  /** Image names for pods and containers; nothing needs to be pulled. */
  readonly importedImages: { readonly pause: string; readonly busybox: string };
  readonly dir: string;
  /** A control group that is removed with it, for LinuxPodSandboxConfig.cgroup_parent. */
  readonly cgroupParent: string;
  /** Where it runs, if pods have a network. */
  readonly machine: Machine | null;
  /** Runs `ctr` of the same version in the CRI's namespace; returns its standard output. */
  ctr(args: readonly string[]): Promise<string>;
}

export interface ContainerdOptions {
  readonly version: ContainerdVersion;
  /** A short absolute path for all its files. Default: a temporary folder. The caller's own folder is kept. */
  readonly dir?: string;
  /** With a second runtime handler, {@link SHIM_SANDBOXES}; only 1.7 can. */
  readonly shimSandboxes?: boolean;
  /** The program that its shims run in place of runc: a path. */
  readonly ociRuntime?: string;
  /** Runs it in a machine of its own with a pod network, for pods that do not share the network of their node. Needs `cni`. */
  readonly podNetwork?: boolean;
  /** More images, by the names that they get. */
  readonly images?: Readonly<Record<string, ProgramName>>;
}

/**
 * A runtime handler whose sandboxes are kept by their shims, as those of virtual machines are: containerd asks the shim for the status of
 * such a sandbox. The shim is that of runc, which can keep a sandbox but run no container in it.
 */
export const SHIM_SANDBOXES = 'shim-sandboxes';

const IMAGES = { pause: 'plegwatch.local/pause:1', busybox: 'plegwatch.local/busybox:1' } as const;
/** The containerd namespace that the CRI keeps its pods in. */
const NAMESPACE = 'k8s.io';
const KIND = 'containerd';
/** Pods use the host's network, but a kubelet's Node is Ready only where a pod network is configured. No plugin ever runs. */
const UNUSED_NETWORK = { cniVersion: '0.4.0', name: 'unused', plugins: [{ type: 'loopback' }] };
const POD_NETWORK = {
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [{ type: 'ptp', ipam: { type: 'host-local', ranges: [[{ subnet: '10.244.0.0/16' }]] } }],
};

/** Starts containerd and imports the images; returns when the CRI lists them (about 3 s). Needs root. */
export async function startContainerd(options: ContainerdOptions): Promise<LocalContainerd> {
  if (process.getuid?.() !== 0) {
    throw new PlegwatchError('PROGRAM_FAILED', 'containerd can only be started by root.', 'Run as root.');
  }
  const { shimSandboxes = false, podNetwork = false } = options;
  let { version } = options;
  const runc = where('runc');
  const images = imageFiles(options);
  const left = abandonedFolders(KIND);
  for (const folder of left) await cleanUpContainerd(folder, runc);
  const place = temporaryFolder(KIND, options.dir, left);
  const { dir } = place;
  // Nobody else may list the container files below it.
  chmodSync(dir, 0o711);
  const socket = join(dir, 'containerd.sock');
  const configFile = join(dir, 'config.toml');
  const bin = join(dir, 'bin');
  writeFileSync(
    configFile,
    configuration({
      version,
      dir,
      runc: options.ociRuntime ?? runc,
      plugins: podNetwork ? dirname(where('cni-ptp')) : bin,
    }) + (shimSandboxes ? sandboxRuntime(bin) : ''),
  );
  mkdirSync(join(dir, 'cni', 'net.d'), { recursive: true });
  const network = podNetwork ? POD_NETWORK : UNUSED_NETWORK;
  writeFileSync(join(dir, 'cni', 'net.d', '10-pods.conflist'), JSON.stringify(network));
  const machine = podNetwork ? await startMachine(KIND, dir) : null;
  if (machine !== null) await run('ip', ['link', 'set', 'lo', 'up'], { networkOf: machine.pid });

  const ctr = (args: readonly string[]) =>
    run(where(`ctr-${version}`), ['--address', socket, '--namespace', NAMESPACE, ...args]);
  const service = await startService(
    () =>
      startIn(machine, {
        name: `containerd ${version}`,
        command: where(`containerd-${version}`),
        args: ['--config', configFile],
        cwd: dir,
        // Finds the shim of the same version before the machine's own.
        env: {
          ...process.env,
          PATH: `${bin}:${dirname(where(`containerd-shim-${version}`))}:${process.env['PATH'] ?? ''}`,
          ...(shimSandboxes ? { ENABLE_CRI_SANDBOXES: 'true' } : {}),
        },
        logFile: join(dir, 'containerd.log'),
        ready: () => isCriReady(socket),
      }),
    async () => {
      await machine?.stop();
      await cleanUpContainerd(dir, runc);
      place.remove();
    },
  );
  try {
    await importImages(ctr, socket, version, images);
  } catch (error) {
    await service.stop();
    throw error;
  }
  const cgroupParent = cgroupOf(dir);
  const made = { socket, importedImages: IMAGES, dir, cgroupParent, machine, ctr };
  const setVersion = (next: ContainerdVersion) => {
    where(`containerd-${next}`);
    version = next;
  };
  return Object.defineProperty(Object.assign(service, made, { version, setVersion }), 'version', {
    get: () => version,
  });
}

const startIn = (machine: Machine | null, options: ProcessOptions): Promise<RunningProcess> =>
  machine === null ? startProcess(options) : startInMachine(machine.pid, options);

/** The image archives by the names of the images. */
const imageFiles = ({ images = {} }: ContainerdOptions): ReadonlyMap<string, string> =>
  new Map([
    [IMAGES.pause, where('image-pause')],
    [IMAGES.busybox, where('image-busybox')],
    ...Object.entries(images).map(([name, program]): [string, string] => [name, where(program)]),
  ]);

/** Returns its configuration. containerd finds the shim in `bin` by the name of the type. */
function sandboxRuntime(bin: string): string {
  // runc's shim does not start without this file, which containerd writes for containers only.
  const script = ['#!/bin/sh', `echo '{}' > config.json`, `exec ${where('containerd-shim-1.7')} "$@"`, ''];
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'containerd-shim-sandboxed-v1'), script.join('\n'), { mode: 0o755 });
  return `
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.${SHIM_SANDBOXES}]
  runtime_type = "io.containerd.sandboxed.v1"
  sandbox_mode = "shim"
`;
}

async function importImages(
  ctr: (args: readonly string[]) => Promise<string>,
  socket: string,
  version: ContainerdVersion,
  files: ReadonlyMap<string, string>,
): Promise<void> {
  // 1.6 always imports locally and has no flag for it.
  const local = version === '1.6' ? [] : ['--local'];
  for (const [name, file] of files) {
    await ctr(['images', 'import', ...local, '--snapshotter', 'native', '--index-name', name, file]);
  }
  // The CRI notices an imported image after a moment.
  await waitFor('the CRI lists the imported images', 240_000, () => hasImages(socket, [...files.keys()]));
}

interface Configuration {
  readonly version: ContainerdVersion;
  readonly dir: string;
  readonly runc: string;
  /** The folder of the pod network's plugins. */
  readonly plugins: string;
}

function configuration({ version, dir, runc, plugins }: Configuration): string {
  const modern = version.startsWith('2.');
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
  // Plugins that write outside our folder, or that only log why they do not load.
  const unwanted = ['nri.v1.nri', 'internal.v1.opt', 'internal.v1.tracing'].concat(
    ['aufs', 'blockfile', 'btrfs', 'devmapper', 'erofs', 'zfs'].map((name) => `snapshotter.v1.${name}`),
  );
  return `version = ${modern ? 3 : 2}
root = "${dir}/root"
state = "${dir}/state"
disabled_plugins = [${unwanted.map((name) => `"io.containerd.${name}"`).join(', ')}]

# At its start the collector of 1.6 may take a layer that is being imported, which then counts as imported for good.
[plugins."io.containerd.gc.v1.scheduler"]
  startup_delay = "1h"

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
  ${modern ? `bin_dirs = ["${plugins}"]` : `bin_dir = "${plugins}"`}
  conf_dir = "${dir}/cni/net.d"
`;
}
