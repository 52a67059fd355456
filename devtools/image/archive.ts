/*
 * Packs an image in the OCI layout, as buildah writes it into a folder, into a tar file: the same image gives the same bytes.
 * `ctr images import`, `k3s ctr images import`, `kind load image-archive` and skopeo take it, and `docker load` if it has one platform.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Descriptor {
  readonly digest: string;
}

interface Index {
  readonly manifests: readonly Descriptor[];
}

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

const REPRODUCIBLE = [
  ...['--format=ustar', '--sort=name', '--mtime=@0', '--mode=u=rwX,go=rX'],
  ...['--owner=0', '--group=0', '--numeric-owner'],
];

export function packArchive(layout: string, path: string): void {
  const files = readdirSync(layout).sort();
  execFileSync('tar', ['--create', `--file=${path}.new`, `--directory=${layout}`, ...REPRODUCIBLE, ...files]);
  // Renamed into place: whoever reads it meanwhile sees a whole archive.
  renameSync(`${path}.new`, path);
}

/** The digest of the image, or of the list of those of all platforms. */
export function digestOf(layout: string): string {
  const { manifests }: Index = readJson(layout, 'index.json');
  const [only, ...others] = manifests;
  if (only === undefined || others.length > 0) throw new Error(`${layout} has not exactly one image`);
  return only.digest;
}

/** Adds the manifest.json of `docker save`, which is what `docker load` reads unless it stores images in containerd. */
export function addDockerManifest(layout: string, name: string): void {
  const { config, layers }: Manifest = readJson(layout, blobPath(digestOf(layout)));
  const Layers = layers.map(({ digest }) => blobPath(digest));
  const manifest = [{ Config: blobPath(config.digest), RepoTags: [name], Layers }];
  writeFileSync(join(layout, 'manifest.json'), JSON.stringify(manifest));
}

const blobPath = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
const readJson = (layout: string, path: string) => JSON.parse(readFileSync(join(layout, path), 'utf8'));
