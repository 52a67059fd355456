/*
 * The contents of a release, by digest: its files, and the digests that a registry has of images and chart. The maker of a release and its verifier
 * compute the same.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import * as v from 'valibot';
import { parse } from 'yaml';
import { ARCHITECTURES } from '../image/layers.ts';
import { readTar } from '../image/tar.ts';
import { sha256Of } from './digest.ts';
import { readLayout } from './layout.ts';
import type { SignatureKind } from './signature.ts';

export type Files = ReadonlyMap<string, Buffer>;

export const SUMS = 'SHA256SUMS';
export const PROVENANCE = 'provenance.json';
/** The suffix of signatures. */
export const SIGNATURE = '.sigstore.json';
/** The files that the key signs, and how. The provenance comes after all other files, and so contains none of these. */
export const SIGNED: readonly (readonly [name: string, kind: SignatureKind])[] = [
  [SUMS, 'file'],
  [PROVENANCE, 'statement'],
];
const LAST = SIGNED.flatMap(([name]) => [name, name + SIGNATURE]);

/** In the order of their names. Throws if the folder has anything but files: a link may lead to something else tomorrow. */
export function filesIn(folder: string): Files {
  const read = (name: string): [string, Buffer] => {
    const path = join(folder, name);
    if (!lstatSync(path).isFile()) throw new Error(`${name}: it is a link or a folder, not a file`);
    return [name, readFileSync(path)];
  };
  return new Map(readdirSync(folder).sort().map(read));
}

/** The version of a release, by the name of its chart. */
export const versionOf = (files: Files): string | undefined =>
  [...files.keys()].flatMap((name) => /^plegwatch-(.+)\.tgz$/.exec(name)?.[1] ?? [])[0];

/** SHA-256 by the name of a file, or by what it is in a registry. Throws if files are missing or contradict each other. */
export function contentsOf(files: Files): Map<string, string> {
  return new Map([
    ...[...files].flatMap(([name, data]): [string, string][] =>
      LAST.includes(name) ? [] : [[name, sha256Of(data)]],
    ),
    ...inRegistry(files),
  ]);
}

function* inRegistry(files: Files): Iterable<[string, string]> {
  const version = versionOf(files);
  const read = (name: string): Buffer => {
    const data = files.get(name);
    if (data === undefined) throw new Error(`${name} is missing`);
    return data;
  };
  const layout = (name: string) => {
    try {
      return readLayout(read(name));
    } catch (error) {
      throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  };
  const image = layout(`image-plegwatch-${version}.tar`);
  yield ['oci:image', hex(image.digest)];
  for (const architecture of ARCHITECTURES) {
    const { digest } = layout(`image-plegwatch-${version}-${architecture}.tar`);
    const platform = `linux/${architecture}`;
    same(`the image for ${platform}`, digest, image.platforms.get(platform));
    yield [`oci:image/${platform}`, hex(digest)];
  }
  const chart = layout(`chart-plegwatch-${version}.tar`);
  const archive = read(`plegwatch-${version}.tgz`);
  same('the chart', `sha256:${sha256Of(archive)}`, [...chart.layers].join());
  const values = readTar(gunzipSync(archive)).get('plegwatch/values.yaml')?.data;
  same(
    'the image that the chart names',
    v.parse(ValuesSchema, parse(String(values))).image.digest,
    image.digest,
  );
  yield ['oci:chart', hex(chart.digest)];
  const manifest = v.parse(PluginSchema, parse(String(read('krew-plegwatch.yaml'))));
  const plugin = sha256Of(read(`kubectl-plegwatch-${version}.tar.gz`));
  for (const platform of manifest.spec.platforms)
    same('the plugin that krew installs', platform.sha256, plugin);
}

const ValuesSchema = v.object({ image: v.object({ digest: v.string() }) });
const PluginSchema = v.object({ spec: v.object({ platforms: v.array(v.object({ sha256: v.string() })) }) });

const hex = (digest: string): string => digest.replace('sha256:', '');

function same(what: string, one: string, other: string | undefined): void {
  if (one !== other) throw new Error(`${what} is ${one} in one file and ${other ?? 'missing'} in another`);
}
