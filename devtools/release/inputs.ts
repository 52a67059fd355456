/*
 * The inputs of a build besides the checkout: the components with a digest of the images' lists, Debian's packages, and the programs that build.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CHECKOUT } from '../checkout.ts';
import { ARCHITECTURES } from '../image/layers.ts';
import { where } from '../localServices/where.ts';
import { sha256Of } from './digest.ts';
import type { Material } from './provenance.ts';

interface Component {
  readonly purl?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

/** `lists` has the list of components of each image. */
export function inputsOf(lists: readonly string[]): Material[] {
  const inputs = [
    ...lists.flatMap((list) => (JSON.parse(list).components as Component[]).flatMap(ofComponent)),
    ...ARCHITECTURES.flatMap((architecture) =>
      debianPackages(join(where(`image-base-${architecture}`), 'debian')),
    ),
    ...debianPackages(dirname(dirname(where('buildah')))),
    helmModule(),
    {
      uri: 'package-lock.json',
      digest: { sha256: sha256Of(readFileSync(join(CHECKOUT, 'package-lock.json'))) },
    },
  ];
  return [...new Map(inputs.map((input) => [JSON.stringify(input), input])).values()];
}

function ofComponent({ purl, hashes = [] }: Component): Material[] {
  const digest = Object.fromEntries(
    hashes.map(({ alg, content }) => [alg.toLowerCase().replace('-', ''), content]),
  );
  return purl === undefined || hashes.length === 0 ? [] : [{ uri: purl, digest }];
}

/** As devtools/localServices/prepare wrote them when it verified and unpacked them. */
const debianPackages = (root: string): Material[] =>
  readFileSync(join(root, 'PACKAGES'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [sha256 = '', name = '', version = '', architecture = ''] = line.split(' ');
      const place = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
      return { uri: `pkg:deb/debian/${place}?arch=${architecture}`, digest: { sha256 } };
    });

function helmModule(): Material {
  const sums = readFileSync(join(CHECKOUT, 'devtools/localServices/helm/go.sum'), 'utf8');
  const [, version, digest] = /^(?:helm\.sh\/helm\/v4) (\S+) h1:(\S+)$/m.exec(sums) ?? [];
  if (version === undefined || digest === undefined) throw new Error('go.sum has no helm');
  // in-toto's name for the digests of go.sum.
  const dirHash = Buffer.from(digest, 'base64').toString('hex');
  return { uri: `pkg:golang/helm.sh/helm/v4@${version}`, digest: { dirHash } };
}
