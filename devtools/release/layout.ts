/*
 * An archive in the OCI layout, such as an image or a chart: what it contains, once every digest in it was recomputed.
 */
import * as v from 'valibot';
import { readTar } from '../image/tar.ts';
import { sha256Of } from './digest.ts';

const DescriptorSchema = v.object({
  mediaType: v.string(),
  digest: v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/)),
  size: v.number(),
  annotations: v.optional(v.record(v.string(), v.string()), {}),
  platform: v.optional(v.object({ os: v.string(), architecture: v.string() }), { os: '', architecture: '' }),
});
const IndexSchema = v.object({ manifests: v.array(DescriptorSchema) });
const ManifestSchema = v.object({ config: DescriptorSchema, layers: v.array(DescriptorSchema) });

/** The config of an image; a chart's has no labels. */
const ConfigSchema = v.object({
  config: v.optional(v.object({ Labels: v.optional(v.record(v.string(), v.string()), {}) }), { Labels: {} }),
});

type Descriptor = v.InferOutput<typeof DescriptorSchema>;

interface Layout {
  /** The digest that a registry has. */
  readonly digest: string;
  /** Its name, with the registry if it was built for one. */
  readonly name: string;
  /** The digest of the manifest of each platform, such as linux/amd64. Empty if the archive has one image. */
  readonly platforms: ReadonlyMap<string, string>;
  /** The commits that its images name: one, if all are of the same build. */
  readonly revisions: ReadonlySet<string>;
  /** By digest. */
  readonly layers: ReadonlySet<string>;
}

/** Throws where a digest or a size does not hold, and if a file belongs to nothing. */
export function readLayout(archive: Buffer): Layout {
  const entries = [...readTar(archive)].filter(([, { type }]) => type !== '5');
  for (const [path, { type }] of entries)
    if (type !== '0') throw new Error(`${path} is no file and no folder`);
  const files = new Map(entries);
  const unread = new Set(files.keys());
  const read = (path: string): Buffer => {
    const data = files.get(path)?.data;
    if (data === undefined) throw new Error(`${path} is missing`);
    unread.delete(path);
    return data;
  };
  const blob = ({ digest, size }: Descriptor): Buffer => {
    const data = read(`blobs/${digest.replace(':', '/')}`);
    if (`sha256:${sha256Of(data)}` !== digest || data.length !== size)
      throw new Error(`${digest} is not its digest`);
    return data;
  };
  const layers = new Set<string>();
  const revisions = new Set<string>();
  const readManifest = (manifest: Descriptor): void => {
    const { config, layers: own } = v.parse(ManifestSchema, parsed(blob(manifest)));
    const { Labels } = v.parse(ConfigSchema, parsed(blob(config))).config;
    const revision = Labels['org.opencontainers.image.revision'];
    if (revision !== undefined) revisions.add(revision);
    for (const layer of own) {
      blob(layer);
      layers.add(layer.digest);
    }
  };
  const [root, ...more] = v.parse(IndexSchema, parsed(read('index.json'))).manifests;
  if (root === undefined || more.length > 0) throw new Error('it has not exactly one image');
  const platforms = new Map<string, string>();
  if (root.mediaType.endsWith('.index.v1+json')) {
    for (const manifest of v.parse(IndexSchema, parsed(blob(root))).manifests) {
      readManifest(manifest);
      const { os, architecture } = manifest.platform;
      platforms.set(`${os}/${architecture}`, manifest.digest);
    }
  } else {
    readManifest(root);
  }
  v.parse(v.object({ imageLayoutVersion: v.literal('1.0.0') }), parsed(read('oci-layout')));
  // What `docker load` reads; it only names blobs.
  unread.delete('manifest.json');
  if (unread.size > 0) throw new Error(`it has files that belong to nothing: ${[...unread].join(', ')}`);
  return {
    digest: root.digest,
    name: root.annotations['org.opencontainers.image.ref.name'] ?? '',
    platforms,
    revisions,
    layers,
  };
}

const parsed = (data: Buffer): unknown => JSON.parse(data.toString());
