/* The image that `make image` builds, in a real containerd. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withBuildah } from '../../devtools/image/buildah.ts';
import { bundledPackages } from '../../devtools/image/bundle.ts';
import { commitTime, revision } from '../../devtools/image/commit.ts';
import { readElf } from '../../devtools/image/elf.ts';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { freePort, waitFor } from '../../devtools/localServices/process.ts';
import { startRedis } from '../../devtools/localServices/redis.ts';
import { where } from '../../devtools/localServices/where.ts';
import { VERSION } from '../../src/platform/version.ts';
import { ROOT } from '../support/build.ts';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { readTar, type TarEntry } from '../support/tar.ts';

const NAME = `docker.io/library/plegwatch:${VERSION}`;

needs(
  'root',
  'helm',
  'image-node',
  'image-base-amd64',
  'image-base-arm64',
  'buildah',
  'containerd-2.1',
  'redis-server',
)('the image', () => {
  const out = mkdtempSync(join(tmpdir(), 'image-'));
  const archive = (suffix = '') => join(out, `plegwatch-${VERSION}${suffix}.tar`);
  // The same for a user without root, who would have one of their own.
  const cache = execFileSync(join(ROOT, 'devtools/localServices/where'), ['--cache'], { encoding: 'utf8' });
  const build = (folder: string, under: readonly string[] = []) => {
    const script = ['devtools/image/build.ts', `plegwatch:${VERSION}`, folder];
    const [program = '', ...args] = [...under, where('image-node'), ...script];
    execFileSync(program, args, { cwd: ROOT, env: { ...process.env, PLEGWATCH_CACHE: cache.trim() } });
  };
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
      NAME,
      `image-${runs}`,
    ],
  ];
  const runOnce = (...command: readonly string[]) => containerd.ctr([...runArgs(['--rm']), ...command]);

  beforeAll(async () => {
    build(out);
    containerd = await startContainerd({ version: '2.1' });
    await containerd.ctr(['images', 'import', '--local', '--snapshotter', 'native', archive()]);
  });
  afterAll(async () => {
    await containerd.stop();
    rmSync(out, { recursive: true });
    expect(leftovers()).toEqual([]);
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

  it('has the same digest when a user builds it again who has another umask and may write to no folder of the system', () => {
    const again = mkdtempSync(join(out, 'again-'));
    const asUser = `
      for dir in /var/lib /var/cache; do mount --rbind $dir $dir; mount -o remount,bind,ro $dir; done
      umask 077
      exec unshare --map-user=1000 --map-group=1000 "$@"`;
    build(again, ['unshare', '--mount', 'sh', '-ec', asUser, 'sh']);
    expect(readFileSync(join(again, `plegwatch-${VERSION}.tar`)).equals(readFileSync(archive()))).toBe(true);
  });

  describe('its release', () => {
    const folder = join(out, 'release');
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    beforeAll(() => {
      execFileSync(process.execPath, ['devtools/release/release.ts', folder, out], {
        cwd: ROOT,
        stdio: 'ignore',
      });
    });

    it('has every file in its checksums, which sha256sum verifies', () => {
      execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder });
      const listed = read('SHA256SUMS')
        .trim()
        .split('\n')
        .map((line) => line.slice(66));
      expect([...listed, 'SHA256SUMS'].sort()).toEqual(readdirSync(folder).sort());
    });

    it('lists exactly the packages in the bundle, Node and the Debian libraries', () => {
      const { components } = JSON.parse(read(`image-plegwatch-${VERSION}-arm64.cdx.json`)) as {
        components: { purl?: string }[];
      };
      const purls = components.map(({ purl }) => purl);
      expect(
        purls
          .filter((purl) => purl?.startsWith('pkg:npm/') === true)
          .map((purl) => decodeURIComponent(purl ?? '')),
      ).toEqual(bundledPackages().map(({ name, version }) => `pkg:npm/${name}@${version}`));
      const others = purls.filter((purl) => purl?.startsWith('pkg:npm/') === false);
      const expected = [
        /^pkg:generic\/node@24/,
        /base-files@.*arch=arm64/,
        /libc6@.*arch=arm64&distro=debian-12$/,
        /libgcc-s1@/,
        /libstdc%2B%2B6@/,
      ];
      expect(others).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
    });

    it('lists every library in the image with its digest', () => {
      const { components } = JSON.parse(read(`image-plegwatch-${VERSION}-amd64.cdx.json`)) as {
        components: { type: string; name: string; hashes?: { content: string }[] }[];
      };
      const listed = components.flatMap(({ type, name, hashes }) =>
        type === 'file' ? [[name.slice(1), hashes?.[0]?.content]] : [],
      );
      const libraries = [...filesOf(archive('-amd64'))].filter(([path]) => /\.so\./.test(path));
      const present = libraries.map(([path, { data }]) => [
        path,
        createHash('sha256').update(data).digest('hex'),
      ]);
      expect(listed.sort()).toEqual(present.sort());
      expect(listed.length).toBeGreaterThan(4);
    });

    it('and the image have the license text of every package in the bundle', () => {
      const text = read('THIRD-PARTY-NOTICES.txt');
      for (const { name, version, licenseText } of bundledPackages()) {
        expect(text).toContain(`${name} ${version}\n`);
        expect(text).toContain(licenseText.slice(0, 40).split('\r')[0]);
      }
      expect(filesOf(archive('-amd64')).get('app/THIRD-PARTY-NOTICES.txt')?.data.toString()).toBe(text);
    });

    it("has kubectl's plugin with its completion, and its digest in the manifest for krew", () => {
      const plugin = join(folder, `kubectl-plegwatch-${VERSION}.tar.gz`);
      const files = readTar(gunzipSync(readFileSync(plugin)));
      expect([...files].map(([name, { mode }]) => [name, mode])).toEqual([
        ['LICENSE', 0o644],
        ['kubectl-plegwatch', 0o755],
        ['kubectl_complete-plegwatch', 0o755],
      ]);
      const script = readFileSync(`${ROOT}kubectl/kubectl-plegwatch`, 'utf8');
      expect(files.get('kubectl-plegwatch')?.data.toString()).toBe(script);
      const digest = createHash('sha256').update(readFileSync(plugin)).digest('hex');
      expect(read('krew-plegwatch.yaml')).toContain(`sha256: ${digest}\n`);
    });

    it('has the chart, which names the image of the same version', () => {
      const redis = ['redis.url=redis://r:6379', 'redis.agent.url=redis://r:6379'];
      const values = ['cluster=c', ...redis, 'database.url=postgres://p/d'].flatMap((value) => [
        '--set',
        value,
      ]);
      const chart = join(folder, `plegwatch-${VERSION}.tgz`);
      const objects = execFileSync(where('helm'), ['template', 'plegwatch', chart, ...values], {
        encoding: 'utf8',
      });
      expect(new Set(objects.match(/image: .*/g))).toEqual(new Set([`image: "plegwatch:${VERSION}"`]));
    });
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
    const all = readTar(readFileSync(archive()));
    const [list] = parse(all.get('index.json')?.data).manifests;
    const platforms = parse(all.get(blobPath(list?.digest ?? ''))?.data).manifests;
    expect(platforms).toEqual(
      ['amd64', 'arm64'].map((architecture) =>
        expect.objectContaining({
          platform: { os: 'linux', architecture },
          digest: parse(readTar(readFileSync(archive(`-${architecture}`))).get('index.json')?.data)
            .manifests[0]?.digest,
        }),
      ),
    );
  });

  it('is the same to readers of docker save archives and of OCI archives', () => {
    const readAs = (format: string) =>
      withBuildah((buildah) => buildah(['pull'], `${format}:${archive('-amd64')}`));
    expect(readAs('docker-archive')).toBe(readAs('oci-archive'));
    const [image] = JSON.parse(String(readTar(readFileSync(archive('-amd64'))).get('manifest.json')?.data));
    expect(image.RepoTags).toEqual([NAME]);
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

const blobPath = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
const parse = (data: Buffer | undefined): OciManifest => JSON.parse(String(data));

/** An index or a manifest. */
interface OciManifest {
  readonly manifests: readonly { readonly digest: string }[];
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string }[];
}

function imageOf(path: string): {
  readonly config: Record<string, unknown>;
  readonly layers: readonly Buffer[];
} {
  const archive = readTar(readFileSync(path));
  const read = (name: string): Buffer => archive.get(name)?.data ?? Buffer.alloc(0);
  const blob = (digest: string) => read(blobPath(digest));
  const manifest = parse(blob(parse(read('index.json')).manifests[0]?.digest ?? ''));
  const { config } = JSON.parse(blob(manifest.config.digest).toString());
  return { config, layers: manifest.layers.map(({ digest }) => gunzipSync(blob(digest))) };
}

/** The file system of an archive with one platform. */
const filesOf = (path: string): Map<string, TarEntry> =>
  new Map(imageOf(path).layers.flatMap((layer) => [...readTar(layer)]));
