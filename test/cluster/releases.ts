/*
 * Two signed releases: this version's, from the image that the tests of a cluster run, and the next one's, whose schema has one migration more. The key is
 * made for them.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT } from '../../devtools/checkout.ts';
import type { Cluster } from '../../devtools/cluster/cluster.ts';
import { documentedCommands, REGISTRY } from '../../devtools/cluster/documentedCommands.ts';
import { where } from '../../devtools/localServices/where.ts';
import { VERSION } from '../../src/platform/version.ts';
import { SCHEMA_VERSION } from '../../src/store/migrations.ts';
import { copyOfCheckout } from '../support/buildElsewhere.ts';

export interface Release {
  readonly version: string;
  readonly folder: string;
  /** The public half of the key that signed it. */
  readonly publicKey: string;
}

const NEXT_VERSION = VERSION.replace(/\.\d+\.\d+$/, (rest) => `.${Number(rest.split('.')[1]) + 1}.0`);
/** The only thing that the next version's schema adds. */
export const NEXT_COLUMN = 'of_the_next_version';

const env = { ...process.env, COSIGN_PASSWORD: 'of the test' };

/** This version's, then the next one's. */
export function makeReleases(dir: string): readonly Release[] {
  execFileSync(where('cosign'), ['generate-key-pair'], { cwd: dir, env, stdio: 'pipe' });
  const key = join(dir, 'cosign.key');
  const publicKey = join(dir, 'cosign.pub');
  const folder = join(dir, 'release');
  const make = ['devtools/release/release.ts', '--key', key, folder, 'dist/image'];
  execFileSync(where('image-node'), make, { cwd: CHECKOUT, env, stdio: 'pipe' });
  return [
    { version: VERSION, folder, publicKey },
    { version: NEXT_VERSION, folder: releaseNext(dir, key), publicKey },
  ];
}

/** The mount is that of the script alone. */
const SCRIPT = `
  mkdir node_modules
  mount --bind "$MODULES" node_modules
  "$NODE" build.mjs
  "$NODE" devtools/image/build.ts "$IMAGE"
  "$NODE" devtools/release/release.ts --key "$KEY"`;

function releaseNext(dir: string, key: string): string {
  const checkout = copyOfCheckout(dir, 'next checkout');
  const change = (path: string, from: string, to: string) => {
    const text = readFileSync(join(checkout, path), 'utf8');
    if (!text.includes(from)) throw new Error(`${path} has no ${from}`);
    writeFileSync(join(checkout, path), text.replaceAll(from, to));
  };
  change('package.json', `"version": "${VERSION}"`, `"version": "${NEXT_VERSION}"`);
  change('helm/plegwatch/Chart.yaml', `ersion: ${VERSION}\n`, `ersion: ${NEXT_VERSION}\n`);
  const schema = (version: number) => `SCHEMA_VERSION = ${version};`;
  change('src/store/migrations.ts', schema(SCHEMA_VERSION), schema(SCHEMA_VERSION + 1));
  const number = String(readdirSync(join(checkout, 'migrations')).length + 1).padStart(4, '0');
  writeFileSync(
    join(checkout, `migrations/${number}_next.sql`),
    `-- compatible since: ${SCHEMA_VERSION}\nALTER TABLE store.node ADD COLUMN ${NEXT_COLUMN} text;\n`,
  );
  execFileSync('unshare', ['--mount', 'sh', '-ec', SCRIPT], {
    cwd: checkout,
    env: {
      ...env,
      MODULES: join(CHECKOUT, 'node_modules'),
      NODE: where('image-node'),
      IMAGE: `${REGISTRY}/plegwatch:${NEXT_VERSION}`,
      KEY: key,
    },
    stdio: 'pipe',
  });
  return join(checkout, 'dist/release');
}

/** Digests that were verified, and that a registry therefore has to show. */
export interface Published {
  readonly version: string;
  readonly image: string;
  readonly chart: string;
}

/** Verifies the release, then pushes image and chart as docs/how-to/image.md says. Returns the digests that were verified. */
export async function publish(cluster: Cluster, { version, folder, publicKey }: Release): Promise<Published> {
  const verified = await cluster.shell(`make verify-release RELEASE='${folder}' KEY='${publicKey}'`);
  console.log(verified);
  const digest = (what: string) =>
    new RegExp(`oci:${what} (sha256:[0-9a-f]{64})\n`).exec(verified)?.[1] ?? '';
  const push = documentedCommands('docs/how-to/image.md', '## A release')
    .replaceAll('skopeo copy', `'${where('skopeo')}' --insecure-policy copy --quiet --dest-tls-verify=false`)
    .replaceAll('dist/release/', '')
    .replaceAll(REGISTRY, cluster.registry.host)
    .replaceAll(VERSION, version);
  await cluster.shell(`cd '${folder}'\n${push}`);
  return { version, image: digest('image'), chart: digest('chart') };
}
