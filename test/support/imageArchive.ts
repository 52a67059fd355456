/*
 * Reads an image as `make image` writes it: an archive in the OCI layout.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { readTar, type TarEntry } from '../../devtools/image/tar.ts';

interface Descriptor {
  readonly digest: string;
}

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** The image of an archive with one platform. */
export function imageOf(path: string): {
  readonly config: Record<string, unknown>;
  readonly layers: readonly Buffer[];
} {
  const archive = readTar(readFileSync(path));
  const blob = ({ digest }: Descriptor): Buffer =>
    archive.get(`blobs/${digest.replace(':', '/')}`)?.data ?? Buffer.alloc(0);
  const index: { manifests: [Descriptor] } = JSON.parse(String(archive.get('index.json')?.data));
  const { config, layers }: Manifest = JSON.parse(String(blob(index.manifests[0])));
  return { ...JSON.parse(String(blob(config))), layers: layers.map((layer) => gunzipSync(blob(layer))) };
}

/** Its file system. */
export const filesOf = (path: string): Map<string, TarEntry> =>
  new Map(imageOf(path).layers.flatMap((layer) => [...readTar(layer)]));
