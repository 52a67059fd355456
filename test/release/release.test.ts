/*
 * What `make release` makes, and what `make verify-release` finds in it: a release that a key of the test signed, and the same commit built again elsewhere.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { documentedCommands } from '../../devtools/cluster/documentedCommands.ts';
import { bundledPackages } from '../../devtools/image/bundle.ts';
import { commitId, revision } from '../../devtools/image/commit.ts';
import { readTar, type TarEntry } from '../../devtools/image/tar.ts';
import { startRegistry } from '../../devtools/localServices/registry.ts';
import { where } from '../../devtools/localServices/where.ts';
import { writeChart } from '../../devtools/release/chart.ts';
import {
  contentsOf,
  type Files,
  filesIn,
  PROVENANCE,
  SIGNATURE,
  SIGNED,
  SUMS,
} from '../../devtools/release/contents.ts';
import { sha256Of } from '../../devtools/release/digest.ts';
import { faultsOf } from '../../devtools/release/faults.ts';
import { keepRelease, PROGRAM } from '../../devtools/release/keep.ts';
import { writePlugin } from '../../devtools/release/kubectlPlugin.ts';
import { readLayout } from '../../devtools/release/layout.ts';
import { sign as signRelease } from '../../devtools/release/sign.ts';
import { bundleOf, signedBytes, verifyBundle } from '../../devtools/release/signature.ts';
import { VERSION } from '../../src/platform/version.ts';
import { ROOT } from '../support/build.ts';
import { buildElsewhere } from '../support/buildElsewhere.ts';
import { filesOf } from '../support/imageArchive.ts';
import { needs } from '../support/needs.ts';
import { IMAGE, sharedImage } from '../support/sharedImage.ts';

const PUBLIC_KEY = 'plegwatch.pub';
const VERIFY = 'docs/how-to/verify.md';

needs(
  'root',
  'helm',
  'cosign',
  'image-node',
  'image-base-amd64',
  'image-base-arm64',
  'buildah',
  'registry',
  'skopeo',
)('a release', () => {
  const out = mkdtempSync(join(tmpdir(), 'release-'));
  const folder = join(out, 'release');
  const node = where('image-node');
  const amd64 = join(folder, `image-plegwatch-${VERSION}-amd64.tar`);
  const chart = join(folder, `plegwatch-${VERSION}.tgz`);
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  let images: string;
  let files: Files;
  let publicKey: KeyObject;
  const file = (name: string): Buffer => files.get(name) ?? Buffer.alloc(0);
  const imageDigest = () => readLayout(file(`image-plegwatch-${VERSION}.tar`)).digest;

  beforeAll(async () => {
    vi.stubEnv('COSIGN_PASSWORD', 'of the test');
    execFileSync(where('cosign'), ['generate-key-pair'], { cwd: out, stdio: 'pipe' });
    publicKey = createPublicKey(readFileSync(join(out, 'cosign.pub')));
    images = await sharedImage();
    const release = ['devtools/release/release.ts', '--key', join(out, 'cosign.key'), folder, images];
    execFileSync(node, release, { cwd: ROOT, stdio: 'pipe' });
    files = filesIn(folder);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(out, { recursive: true });
  });

  const faultsWith = (name: string, data: Buffer) => faultsOf(new Map([...files, [name, data]]), publicKey);

  it('is verified by the public key alone, without a network, and not if a file changed', () => {
    const verify = ['--net', node, 'devtools/release/verify.ts', folder, join(out, 'cosign.pub')];
    const run = () => spawnSync('unshare', verify, { cwd: ROOT, encoding: 'utf8' });
    expect(run()).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(
        new RegExp(`: plegwatch ${VERSION}, [^]* oci:image ${imageDigest()}\n[^]* commit ${commitId()}\n`),
      ),
    });
    writeFileSync(join(folder, 'LICENSE'), changed(file('LICENSE'), 0));
    expect(run()).toMatchObject({ status: 1, stderr: expect.stringContaining('NOT VERIFIED: LICENSE: ') });
    writeFileSync(join(folder, 'LICENSE'), file('LICENSE'));
  });

  it('has no file of which a changed byte is not found', () => {
    for (const [name, data] of files) {
      const faults = faultsWith(name, changed(data, data.length >> 1));
      expect(faults.filter((fault) => fault.startsWith(name))).not.toEqual([]);
    }
  });

  it('has no signature of which any changed byte is not found', () => {
    for (const [name, kind] of SIGNED) {
      const bundle = file(name + SIGNATURE);
      const verify = (data: Buffer) => verifyBundle(kind, String(data), file(name), publicKey);
      verify(bundle);
      // Between them is the payload of a statement.
      for (const at of [...bundle.keys()].filter((place) => place < 300 || place > bundle.length - 300)) {
        expect(() => verify(changed(bundle, at)), `${name}, byte ${at}`).toThrow();
      }
    }
  });

  it('is refused without one of its files, and with one more', () => {
    for (const name of ['LICENSE', ...SIGNED.flatMap(([signed]) => [signed, signed + SIGNATURE])]) {
      const rest = new Map([...files].filter(([other]) => other !== name));
      expect(faultsOf(rest, publicKey).join('\n')).toContain(`${name} is missing`);
    }
    expect(faultsWith('more', Buffer.from('more'))).toContain('more: it is not in SHA256SUMS');
  });

  it('is refused under the key of somebody else', () => {
    const { publicKey: other } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const faults = faultsOf(files, other);
    expect(faults.map((fault) => fault.split(': ')[0])).toEqual(SIGNED.map(([name]) => name + SIGNATURE));
  });

  it('is refused if its provenance is signed and of other contents', () => {
    const { publicKey: other, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const faultsOfProvenance = (provenance: string) => {
      const sums = read(SUMS).replace(sha256Of(file(PROVENANCE)), sha256Of(provenance));
      const signed = new Map([...files, [PROVENANCE, Buffer.from(provenance)], [SUMS, Buffer.from(sums)]]);
      for (const [name, kind] of SIGNED) {
        const data = signed.get(name) ?? Buffer.alloc(0);
        const signature = sign('sha256', signedBytes(kind, data), privateKey);
        signed.set(name + SIGNATURE, Buffer.from(bundleOf(kind, signature, data, other)));
      }
      return faultsOf(signed, other);
    };
    expect(faultsOfProvenance(read(PROVENANCE))).toEqual([]);
    const faults = faultsOfProvenance(read(PROVENANCE).replace('"oci:chart"', '"oci:other"'));
    expect(faults.map((fault) => fault.split(': ')[0])).toEqual(['oci:other', 'oci:chart']);
  });

  it.each(['amd64', 'arm64'])('has no archive whose digests do not hold: %s', (architecture) => {
    const archive = file(`image-plegwatch-${VERSION}-${architecture}.tar`);
    for (const [name, { type, data }] of readTar(archive)) {
      // Its only use is to name blobs for `docker load`.
      if (type !== '0' || name === 'manifest.json') continue;
      const at = data.byteOffset - archive.byteOffset + (data.length >> 1);
      expect(() => readLayout(changed(archive, at)), name).toThrow();
    }
  });

  it('has no images, chart or plugin that contradict each other', () => {
    const contentsWith = (name: string, data: Buffer) => contentsOf(new Map([...files, [name, data]]));
    const arm64 = file(`image-plegwatch-${VERSION}-arm64.tar`);
    expect(() => contentsWith(basename(amd64), arm64)).toThrow('the image for linux/amd64');
    expect(() => contentsWith(`kubectl-plegwatch-${VERSION}.tar.gz`, arm64)).toThrow(
      'the plugin that krew installs',
    );
    expect(() => contentsWith(basename(chart), arm64)).toThrow('the chart');
    expect(() =>
      contentsWith(`image-plegwatch-${VERSION}.tar`, file(`chart-plegwatch-${VERSION}.tar`)),
    ).toThrow('the image for linux/amd64');
  });

  it.each(['## With openssl', '## With cosign'])(
    'is verified as docs/how-to/verify.md says, and a changed one is not: %s',
    (heading) => {
      const copy = mkdtempSync(join(out, 'documented-'));
      for (const [name, data] of files) writeFileSync(join(copy, name), data);
      copyFileSync(join(out, 'cosign.pub'), join(out, PUBLIC_KEY));
      const PATH = `${dirname(where('cosign'))}:${process.env['PATH']}`;
      const commands = documentedCommands(VERIFY, heading);
      const verify = () =>
        // As pasted: no command that fails ends the others.
        spawnSync('unshare', ['--net', 'bash', '-c', commands], { cwd: copy, env: { ...process.env, PATH } })
          .status;
      expect(verify()).toBe(0);
      const other = changed(file('LICENSE'), 0);
      writeFileSync(join(copy, 'LICENSE'), other);
      expect(verify()).not.toBe(0);
      writeFileSync(join(copy, SUMS), read(SUMS).replace(sha256Of(file('LICENSE')), sha256Of(other)));
      expect(verify()).not.toBe(0);
    },
  );

  it('is not signed by another key than the one whose fingerprint the publisher names', () => {
    expect(() => signRelease(folder, join(out, 'cosign.key'), '0'.repeat(64))).toThrow(
      'and publisher.yaml names 000',
    );
  });

  it('is not signed by a key that is not on P-256', () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const key = join(out, 'ed25519');
    writeFileSync(`${key}.pem`, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const importKey = ['import-key-pair', '--key', `${key}.pem`, '--output-key-prefix', key];
    execFileSync(where('cosign'), importKey, { stdio: 'pipe' });
    expect(() => signRelease(folder, `${key}.key`, '')).toThrow(`KEY=${key}.key is not on the curve P-256`);
  });

  it('is not made from an image of another commit', () => {
    const other = join(out, 'other');
    const git = (...args: readonly string[]) => execFileSync('git', args, { stdio: 'pipe' });
    git('init', '--quiet', other);
    const author = ['-c', 'user.name=test', '-c', 'user.email=test@git.example'];
    git('-C', other, ...author, 'commit', '--quiet', '--allow-empty', '--message=other');
    const { status, stderr } = spawnSync(
      node,
      ['devtools/release/release.ts', join(out, 'refused'), images],
      { cwd: ROOT, env: { ...process.env, GIT_DIR: join(other, '.git') }, encoding: 'utf8' },
    );
    expect(status).toBe(1);
    expect(stderr).toContain(`has an image of ${revision()}, and the checkout is `);
  });

  it('says what it was built from, by digest, and what became of it', () => {
    const { subject, predicate } = JSON.parse(read('provenance.json'));
    expect(subject.map(({ name }: { name: string }) => name)).toEqual([...contentsOf(files).keys()]);
    const inputs: { uri: string; digest: Record<string, string> }[] =
      predicate.buildDefinition.resolvedDependencies;
    expect(inputs[0]?.digest).toEqual({ gitCommit: commitId() });
    expect(
      inputs.filter(({ digest }) =>
        Object.values(digest).some((value) => !/^([0-9a-f]{2}){20,64}$/.test(value)),
      ),
    ).toEqual([]);
    const uris = inputs.map(({ uri }) => uri);
    for (const kind of [
      'pkg:npm/pino@',
      'pkg:deb/debian/libc6@',
      'pkg:deb/debian/buildah@',
      'pkg:golang/helm.sh/',
      'pkg:generic/node@',
    ]) {
      expect(uris).toContainEqual(expect.stringContaining(kind));
    }
  });

  it('is the same, signatures apart, from another folder, by a user with another umask, time zone and language, on another day', () => {
    const again = filesIn(buildElsewhere(out, IMAGE));
    const unsigned = [...files].filter(([name]) => !name.endsWith(SIGNATURE));
    expect(digestsOf(again)).toEqual(digestsOf(new Map(unsigned)));
  });

  it('is kept for later upgrades with the program of its image, and only as its provenance states it', () => {
    const kept = join(out, 'kept');
    keepRelease(folder, kept);
    const program = readTar(brotliDecompressSync(readFileSync(join(kept, PROGRAM))));
    const shown = (entries: Iterable<[string, TarEntry]>) =>
      [...entries].flatMap(([path, { type, mode, data }]) =>
        type === '0' && path.startsWith('app/') ? [`${path} ${mode} ${sha256Of(data)}`] : [],
      );
    expect(shown(program).sort()).toEqual(shown(filesOf(amd64)).sort());
    expect(shown(program).length).toBeGreaterThan(100);
    expect(readFileSync(join(kept, basename(chart)))).toEqual(file(basename(chart)));
    for (const name of [amd64, chart].map((path) => basename(path))) {
      writeFileSync(join(folder, name), changed(file(name), file(name).length >> 1));
      expect(() => keepRelease(folder, kept)).toThrow(
        `${name} in ${folder} is not the one of its provenance`,
      );
      writeFileSync(join(folder, name), file(name));
    }
  });

  it('has a chart that helm lints, with what Artifact Hub asks for', () => {
    execFileSync(where('helm'), ['lint', '--strict', '--set', 'trial.enabled=true', chart], {
      stdio: 'pipe',
    });
    const shown = parse(execFileSync(where('helm'), ['show', 'chart', chart], { encoding: 'utf8' }));
    const annotation = (name: string) => parse(shown.annotations[`artifacthub.io/${name}`]);
    expect(annotation('images')).toEqual([{ name: 'plegwatch', image: `${IMAGE}@${imageDigest()}` }]);
    const [definition] = annotation('crds');
    const [example] = annotation('crdsExamples');
    expect(definition).toMatchObject({
      kind: 'PLEGReport',
      name: 'plegreports.plegwatch.dev',
      version: 'v1alpha1',
    });
    expect(example).toMatchObject({ kind: 'PLEGReport', apiVersion: 'plegwatch.dev/v1alpha1' });
    expect(annotation('operator')).toBe(true);
    const changes = readFileSync(`${ROOT}CHANGELOG.md`, 'utf8');
    expect(annotation('changes').length).toBe(changes.split('\n## ')[1]?.match(/^- /gm)?.length);
    expect(annotation('changes').join('')).not.toMatch(/[*`\n]/);
  });

  it('says where source, downloads, key and security contact are, once the publisher has filled them in', () => {
    const dir = mkdtempSync(join(out, 'published-'));
    const source = 'https://git.example/plegwatch';
    const filled = {
      source,
      downloads: `${source}/releases`,
      signKey: { url: `${source}/plegwatch.pub`, fingerprint: '0'.repeat(64) },
      securityContact: 'mailto:security@git.example',
    };
    writeChart(dir, {
      image: { name: IMAGE, digest: imageDigest() },
      publisher: filled,
      created: new Date(0),
    });
    writePlugin(dir, filled);
    const shown = parse(
      execFileSync(where('helm'), ['show', 'chart', join(dir, basename(chart))], { encoding: 'utf8' }),
    );
    expect(shown).toMatchObject({ home: source, sources: [source] });
    expect(parse(shown.annotations['artifacthub.io/links'])).toEqual([
      { name: 'Source', url: source },
      { name: 'Report a vulnerability', url: filled.securityContact },
    ]);
    expect(parse(shown.annotations['artifacthub.io/signKey'])).toEqual(filled.signKey);
    const { spec } = parse(readFileSync(join(dir, 'krew-plegwatch.yaml'), 'utf8'));
    expect(spec).toMatchObject({
      homepage: source,
      platforms: [{ uri: `${source}/releases/kubectl-plegwatch-${VERSION}.tar.gz` }],
    });
  });

  it('has a chart that installs its image by digest, from where it was built for', () => {
    const redis = ['redis.url=redis://r:6379', 'redis.agent.url=redis://r:6379'];
    const values = ['cluster=c', ...redis, 'database.url=postgres://p/d'].flatMap((value) => [
      '--set',
      value,
    ]);
    const objects = execFileSync(where('helm'), ['template', 'plegwatch', chart, ...values], {
      encoding: 'utf8',
    });
    expect(new Set(objects.match(/image: .*/g))).toEqual(
      new Set([`image: "${IMAGE.replace(/:[^:]*$/, '')}@${imageDigest()}"`]),
    );
  });

  it('has the digests of its provenance in a registry, from which helm pulls the chart that was released', async () => {
    const registry = await startRegistry();
    try {
      const contents = contentsOf(files);
      for (const what of ['chart', 'image']) {
        const name = `${what}/plegwatch`;
        await registry.push(join(folder, `${what}-plegwatch-${VERSION}.tar`), `${name}:${VERSION}`);
        const digest = contents.get(`oci:${what}`);
        const pushed = `docker://${registry.host}/${name}@sha256:${digest}`;
        const manifest = execFileSync(where('skopeo'), ['inspect', '--raw', '--tls-verify=false', pushed]);
        expect(sha256Of(manifest)).toBe(digest);
      }
      const pull = [
        'pull',
        `oci://${registry.host}/chart/plegwatch`,
        '--version',
        VERSION,
        '--plain-http',
        '--destination',
        out,
      ];
      const { stdout, stderr } = spawnSync(where('helm'), pull, { encoding: 'utf8' });
      expect(stdout + stderr).toContain(`Digest: sha256:${contents.get('oci:chart')}\n`);
      expect(readFileSync(join(out, basename(chart)))).toEqual(file(basename(chart)));
    } finally {
      await registry.stop();
    }
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
    const libraries = [...filesOf(amd64)].filter(([path]) => /\.so\./.test(path));
    const present = libraries.map(([path, { data }]) => [path, sha256Of(data)]);
    expect(listed.sort()).toEqual(present.sort());
    expect(listed.length).toBeGreaterThan(4);
  });

  it('and the image have the license text of every package in the bundle', () => {
    const text = read('THIRD-PARTY-NOTICES.txt');
    for (const { name, version, licenseText } of bundledPackages()) {
      expect(text).toContain(`${name} ${version}\n`);
      expect(text).toContain(licenseText.slice(0, 40).split('\r')[0]);
    }
    expect(filesOf(amd64).get('app/THIRD-PARTY-NOTICES.txt')?.data.toString()).toBe(text);
  });

  it("has kubectl's plugin with its completion, and its digest in the manifest for krew", () => {
    const plugin = file(`kubectl-plegwatch-${VERSION}.tar.gz`);
    const packed = readTar(gunzipSync(plugin));
    expect([...packed].map(([name, { mode }]) => [name, mode])).toEqual([
      ['LICENSE', 0o644],
      ['kubectl-plegwatch', 0o755],
      ['kubectl_complete-plegwatch', 0o755],
    ]);
    const script = readFileSync(`${ROOT}kubectl/kubectl-plegwatch`, 'utf8');
    expect(packed.get('kubectl-plegwatch')?.data.toString()).toBe(script);
    expect(read('krew-plegwatch.yaml')).toContain(`sha256: ${sha256Of(plugin)}\n`);
  });
});

const digestsOf = (files: Files) => [...files].map(([name, data]) => `${sha256Of(data)} ${name}`);

/** With another byte at this place. */
function changed(data: Buffer, at: number): Buffer {
  const copy = Buffer.from(data);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
