/* The image that `make image` builds, in a real containerd. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withBuildah } from '../../devtools/image/buildah.ts';
import { commitTime, revision } from '../../devtools/image/commit.ts';
import { readElf } from '../../devtools/image/elf.ts';
import { readTar } from '../../devtools/image/tar.ts';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { freePort, waitFor } from '../../devtools/localServices/process.ts';
import { startRedis } from '../../devtools/localServices/redis.ts';
import { where } from '../../devtools/localServices/where.ts';
import { readLayout } from '../../devtools/release/layout.ts';
import { VERSION } from '../../src/platform/version.ts';
import { filesOf, imageOf } from '../support/imageArchive.ts';
import { newLeftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { IMAGE, sharedImage } from '../support/sharedImage.ts';

const leftHere = newLeftovers();

needs(
  'root',
  'image-node',
  'image-base-amd64',
  'image-base-arm64',
  'buildah',
  'containerd-2.1',
  'redis-server',
)('the image', () => {
  const out = mkdtempSync(join(tmpdir(), 'image-'));
  const archive = (suffix = '') => join(images, `plegwatch-${VERSION}${suffix}.tar`);
  let images: string;
  let containerd: LocalContainerd;
  let runs = 0;

  const runArgs = (options: readonly string[]) => [
    ...[
      'run',
      '--snapshotter',
      'native',
      '--read-only',
      '--net-host',
      '--cgroup',
      `${containerd.cgroupParent}/${++runs}`,
    ],
    ...[
      '--runc-binary',
      where('runc'),
      '--runc-root',
      join(containerd.dir, 'runc'),
      ...options,
      IMAGE,
      `image-${runs}`,
    ],
  ];
  const runOnce = (...command: readonly string[]) => containerd.ctr([...runArgs(['--rm']), ...command]);

  beforeAll(async () => {
    images = await sharedImage();
    containerd = await startContainerd({ version: '2.1' });
    await containerd.ctr(['images', 'import', '--local', '--snapshotter', 'native', archive()]);
  });
  afterAll(async () => {
    await containerd.stop();
    rmSync(out, { recursive: true });
    expect(leftHere()).toEqual([]);
  });

  it('prints its help without arguments, as nobody in particular on a read-only root', async () => {
    expect(await runOnce()).toContain('Usage: plegwatch');
    expect(await runOnce('/usr/local/bin/node', '-p', 'process.getuid() + ":" + process.getgid()')).toBe(
      '65532:65532\n',
    );
  });

  it('runs plegwatch by its name, as kubectl exec does', async () => {
    expect(await runOnce('plegwatch', '--version')).toBe(`${VERSION}\n`);
  });

  it('runs an agent on a read-only root that subscribes to the runtime', async () => {
    const redis = await startRedis({ clusters: ['image'] });
    const port = await freePort();
    try {
      const env = Object.entries({
        PLEGWATCH_CLUSTER: 'image',
        PLEGWATCH_NODE: 'node',
        PLEGWATCH_REDIS_URL: redis.urlOf('agent', 'image'),
        PLEGWATCH_CRI_ENDPOINT: 'unix:///host/containerd.sock',
        PLEGWATCH_SPOOL_DIR: '/spool',
        PLEGWATCH_HTTP_ADDRESS: `127.0.0.1:${port}`,
      }).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
      const mounts = [
        ['--mount', `type=bind,src=${containerd.dir},dst=/host,options=rbind:ro`],
        ['--mount', `type=bind,src=${mkdtempSync(join(out, 'spool-'))},dst=/spool,options=rbind:rw`],
      ].flat();
      const id = `image-${runs + 1}`;
      const entry = ['/usr/local/bin/node', '/app/dist/cli.js', 'agent'];
      await containerd.ctr([...runArgs(['--detach', '--user', '0:0', ...env, ...mounts]), ...entry]);
      try {
        await waitFor('the agent is subscribed', 240_000, async () => {
          const metrics = await fetch(`http://127.0.0.1:${port}/metrics`).then(
            (answer) => answer.text(),
            () => '',
          );
          return /^plegwatch_stream_connected\S* 1$/m.test(metrics);
        });
      } finally {
        await containerd.ctr(['tasks', 'rm', '--force', id]);
        await containerd.ctr(['containers', 'rm', id]);
      }
    } finally {
      await redis.stop();
    }
  });

  it('has the user, entry point and labels of the Dockerfile', () => {
    for (const suffix of ['-amd64', '-arm64']) {
      expect(imageOf(archive(suffix)).config).toEqual({
        User: '65532:65532',
        Env: ['PATH=/usr/local/bin'],
        WorkingDir: '/app',
        Entrypoint: ['/usr/local/bin/node', '/app/dist/cli.js'],
        Cmd: ['--help'],
        Labels: {
          'org.opencontainers.image.title': 'plegwatch',
          'org.opencontainers.image.description': 'Records PLEG evidence of Kubernetes nodes',
          'org.opencontainers.image.licenses': 'Apache-2.0',
          'org.opencontainers.image.version': VERSION,
          'org.opencontainers.image.revision': revision(),
          'org.opencontainers.image.created': commitTime(),
        },
      });
    }
  });

  it('has one digest for each platform, whichever archive it comes from', () => {
    const layoutOf = (suffix: string) => readLayout(readFileSync(archive(suffix)));
    expect(layoutOf('').platforms).toEqual(
      new Map(['amd64', 'arm64'].map((name) => [`linux/${name}`, layoutOf(`-${name}`).digest])),
    );
  });

  it('is the same to readers of docker save archives and of OCI archives', () => {
    const readAs = (format: string) =>
      withBuildah((buildah) => buildah(['pull'], `${format}:${archive('-amd64')}`));
    expect(readAs('docker-archive')).toBe(readAs('oci-archive'));
    const [image] = JSON.parse(String(readTar(readFileSync(archive('-amd64'))).get('manifest.json')?.data));
    expect(image.RepoTags).toEqual([IMAGE]);
  });

  it('has files of root that everybody can read, dated 1970, in a layer of Node and one of plegwatch', () => {
    for (const suffix of ['-amd64', '-arm64']) {
      const [base = [], app = [], ...more] = imageOf(archive(suffix)).layers.map((layer) =>
        execFileSync('tar', ['--list', '--verbose', '--numeric-owner', '--utc'], {
          input: layer,
          encoding: 'utf8',
        })
          .trim()
          .split('\n'),
      );
      const common = /^(drwxr-xr-x|-rw[x-]r-[x-]r-[x-]|lrwxrwxrwx) 0\/0 +\d+ 1970-01-01 00:00 /;
      expect([...base, ...app].filter((line) => !common.test(line))).toEqual([]);
      expect(base.filter((line) => / (app|migrations)\//.test(line))).toEqual([]);
      expect(app.filter((line) => /\/(node|lib)/.test(line))).toEqual([]);
      expect(more).toEqual([]);
    }
  });

  it.each([
    ['-amd64', 62],
    ['-arm64', 183],
  ])('has no program but Node, and all libraries that it needs: %s', (suffix, machine) => {
    const files = filesOf(archive(suffix));
    const elves = [...files].flatMap(([path, { data }]) =>
      data.length > 4 && data.readUInt32BE(0) === 0x7f454c46 ? [{ path, ...readElf(data) }] : [],
    );
    expect(elves.filter((elf) => elf.machine !== machine)).toEqual([]);
    const names = new Set(elves.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)));
    expect(elves.flatMap(({ libraries }) => libraries).filter((name) => !names.has(name))).toEqual([]);
    const executables = [...files].filter(([, { type, mode }]) => type === '0' && (mode & 0o111) !== 0);
    expect(executables.map(([path]) => path).filter((path) => !/\/ld-linux-[^/]*$/.test(path))).toEqual([
      'usr/local/bin/node',
      'app/plegwatch.js',
    ]);
  });
});
