/*
 * An image as a tar file in the OCI layout, with the manifest.json of `docker save` beside it where there is one platform:
 * `docker load`, `ctr images import`, `k3s ctr images import`, `kind load image-archive` and skopeo take it.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ImageConfig } from './dockerfile.ts';
import type { Architecture } from './layers.ts';
import { packTar } from './tar.ts';
import { type Entry, file, type Tree } from './tree.ts';

export interface ImageDescription {
  /** Such as plegwatch:0.1.0. */
  readonly name: string;
  readonly config: ImageConfig;
  /** ISO 8601. */
  readonly created: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** A layer, packed and compressed. */
export interface Layer {
  readonly descriptor: Descriptor;
  readonly data: Buffer;
  /** The digest before compression. */
  readonly diffId: string;
}

/** The image of one platform. */
export interface PlatformImage {
  readonly architecture: Architecture;
  readonly manifest: Descriptor;
  readonly config: Descriptor;
  readonly layers: readonly Layer[];
  /** All that its manifest reaches, and the manifest. */
  readonly blobs: ReadonlyMap<string, Buffer>;
}

const compress = promisify(gzip);
const INDEX = 'application/vnd.oci.image.index.v1+json';
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const digestOf = (data: Buffer): string => `sha256:${createHash('sha256').update(data).digest('hex')}`;
const describe = (mediaType: string, data: Buffer): Descriptor => ({
  mediaType,
  digest: digestOf(data),
  size: data.length,
});

export async function packLayer(tree: Tree): Promise<Layer> {
  const tar = packTar(tree);
  const data = await compress(tar);
  const descriptor = describe('application/vnd.oci.image.layer.v1.tar+gzip', data);
  return { descriptor, data, diffId: digestOf(tar) };
}

export function platformImage(
  architecture: Architecture,
  { config, created }: ImageDescription,
  layers: readonly Layer[],
): PlatformImage {
  const configData = json({
    created,
    architecture,
    os: 'linux',
    ...variantOf(architecture),
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created, created_by: 'make image' })),
  });
  const configDescriptor = describe('application/vnd.oci.image.config.v1+json', configData);
  const manifestData = json({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: configDescriptor,
    layers: layers.map(({ descriptor }) => descriptor),
  });
  const manifest = describe('application/vnd.oci.image.manifest.v1+json', manifestData);
  const blobs = new Map([
    [manifest.digest, manifestData],
    [configDescriptor.digest, configData],
    ...layers.map(({ descriptor, data }): [string, Buffer] => [descriptor.digest, data]),
  ]);
  return { architecture, manifest, config: configDescriptor, layers, blobs };
}

/** The archive of one platform, or of several. */
export function packArchive({ name }: ImageDescription, images: readonly PlatformImage[]): Buffer {
  const [only, ...others] = images;
  const manifests = images.map(({ manifest, architecture }) => ({
    ...manifest,
    platform: platformOf(architecture),
  }));
  const blobs = new Map(images.flatMap((image) => [...image.blobs]));
  let described: object | undefined = manifests[0];
  if (others.length > 0) {
    const index = json({ schemaVersion: 2, mediaType: INDEX, manifests });
    described = describe(INDEX, index);
    blobs.set(digestOf(index), index);
  }
  const annotations = {
    'io.containerd.image.name': containerdName(name),
    'org.opencontainers.image.ref.name': tagOf(name),
  };
  const top = { schemaVersion: 2, mediaType: INDEX, manifests: [{ ...described, annotations }] };
  const entries = new Map<string, Entry>([
    ['oci-layout', file(json({ imageLayoutVersion: '1.0.0' }))],
    ['index.json', file(json(top))],
    ...[...blobs].map(([digest, data]): [string, Entry] => [blobPath(digest), file(data)]),
  ]);
  if (only !== undefined && others.length === 0)
    entries.set('manifest.json', file(dockerManifest(name, only)));
  return packTar(entries);
}

/** What `docker load` reads, unless it stores images in containerd. */
function dockerManifest(name: string, { config, layers }: PlatformImage): Buffer {
  const paths = layers.map(({ descriptor }) => blobPath(descriptor.digest));
  return json([{ Config: blobPath(config.digest), RepoTags: [name], Layers: paths }]);
}

const blobPath = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
const variantOf = (architecture: Architecture) => (architecture === 'arm64' ? { variant: 'v8' } : {});
const platformOf = (architecture: Architecture) => ({
  architecture,
  os: 'linux',
  ...variantOf(architecture),
});
const tagOf = (name: string): string => name.slice(name.lastIndexOf(':') + 1);

/** With its registry, as containerd and the kubelet complete a short name. */
function containerdName(name: string): string {
  const [first = '', ...more] = name.split('/');
  if (more.length === 0) return `docker.io/library/${name}`;
  return /[.:]|^localhost$/.test(first) ? name : `docker.io/${name}`;
}
