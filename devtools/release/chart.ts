/*
 * The chart of a release: it names the release's image by digest, and says what Artifact Hub asks for. As the archive that helm packs, and as an OCI
 * layout, whose digest is the one that a registry has.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { REPORT_API } from '../../src/controller/reports/status.ts';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { CRD } from '../crd.ts';
import { packArchive } from '../image/archive.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { where } from '../localServices/where.ts';
import { changesOf } from './changes.ts';
import { sha256Of } from './digest.ts';
import { EXAMPLE } from './exampleReport.ts';
import type { Publisher } from './publisher.ts';

/** The image, by digest and by its name with registry and tag. */
interface ReleasedImage {
  readonly digest: string;
  readonly name: string;
}

/** Chart.yaml. */
interface ChartMetadata extends Readonly<Record<string, unknown>> {
  readonly version: string;
  readonly appVersion: string;
  readonly description: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const SOURCE = join(CHECKOUT, 'helm/plegwatch');
/** The name of an image that was built for no registry. */
const UNPUBLISHED = `docker.io/library/plegwatch:${VERSION}`;
const ARCHIVE = `plegwatch-${VERSION}.tgz`;
const LAYOUT = `chart-plegwatch-${VERSION}.tar`;

export interface ChartOptions {
  readonly image: ReleasedImage;
  readonly publisher: Publisher;
  /** The time of the commit. */
  readonly created: Date;
}

/** Writes both into a folder. */
export function writeChart(out: string, { image, publisher, created }: ChartOptions): void {
  const { dir, remove } = temporaryFolder('chart', undefined);
  try {
    const chart = join(dir, 'plegwatch');
    cpSync(SOURCE, chart, { recursive: true });
    const metadata = released(readMetadata(), image, publisher);
    writeFileSync(join(chart, 'Chart.yaml'), stringify(metadata));
    writeFileSync(
      join(chart, 'values.yaml'),
      pinned(readFileSync(join(SOURCE, 'values.yaml'), 'utf8'), image),
    );
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(created.getTime() / 1000) };
    execFileSync(where('helm'), ['package', chart, '--destination', out], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env,
    });
    const layout = join(dir, 'layout');
    writeLayout(layout, readFileSync(join(out, ARCHIVE)), metadata, created);
    packArchive(layout, join(out, LAYOUT));
  } finally {
    remove();
  }
}

function readMetadata(): ChartMetadata {
  const metadata = parse(readFileSync(join(SOURCE, 'Chart.yaml'), 'utf8')) as ChartMetadata;
  if (metadata.version !== VERSION || metadata.appVersion !== VERSION) {
    throw new Error(`helm/plegwatch/Chart.yaml is not of version ${VERSION}, package.json is`);
  }
  return metadata;
}

function released(metadata: ChartMetadata, image: ReleasedImage, publisher: Publisher): ChartMetadata {
  const { source, securityContact, signKey } = publisher;
  const links = [
    { name: 'Source', url: source },
    { name: 'Report a vulnerability', url: securityContact },
  ].filter(({ url }) => url !== '');
  const changes = changesOf(readFileSync(join(CHECKOUT, 'CHANGELOG.md'), 'utf8'), VERSION);
  const images = [{ name: 'plegwatch', image: `${image.name}@${image.digest}` }];
  return {
    ...metadata,
    ...(source !== '' && { home: source, sources: [source] }),
    annotations: {
      ...metadata.annotations,
      ...(links.length > 0 && { 'artifacthub.io/links': stringify(links) }),
      ...(signKey.url !== '' && { 'artifacthub.io/signKey': stringify(signKey) }),
      'artifacthub.io/changes': stringify(changes),
      'artifacthub.io/images': stringify(images),
      'artifacthub.io/crds': stringify([definition()]),
      'artifacthub.io/crdsExamples': stringify([EXAMPLE]),
    },
  };
}

function definition() {
  const { spec } = parse(readFileSync(join(CHECKOUT, CRD), 'utf8'));
  const [version] = spec.versions;
  const { description } = version.schema.openAPIV3Schema as { description: string };
  const { kind } = REPORT_API;
  return {
    kind,
    version: version.name,
    name: `${spec.names.plural}.${spec.group}`,
    displayName: kind,
    description,
  };
}

/** The default values, with the image of the release. */
function pinned(values: string, { name, digest }: ReleasedImage): string {
  const repository = name === UNPUBLISHED ? 'plegwatch' : name.replace(/:[^:/]*$/, '');
  const block = /(?<=^image:\n)(.*\n) {2}repository: plegwatch\n((?: {2}.*\n)*) {2}digest: ''$/m;
  if (!block.test(values)) throw new Error('values.yaml has no image as it is replaced here');
  return values.replace(block, `$1  repository: ${repository}\n$2  digest: ${digest}`);
}

/** As `helm push` makes it. */
function writeLayout(layout: string, archive: Buffer, metadata: ChartMetadata, created: Date): void {
  const blobs = join(layout, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const add = (mediaType: string, data: Buffer) => {
    const digest = sha256Of(data);
    writeFileSync(join(blobs, digest), data);
    return { mediaType, digest: `sha256:${digest}`, size: data.length };
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: add('application/vnd.cncf.helm.config.v1+json', jsonOf(metadata)),
    layers: [add('application/vnd.cncf.helm.chart.content.v1.tar+gzip', archive)],
    annotations: {
      ...metadata.annotations,
      'org.opencontainers.image.title': 'plegwatch',
      'org.opencontainers.image.version': VERSION,
      'org.opencontainers.image.description': metadata.description,
      'org.opencontainers.image.created': created.toISOString(),
    },
  };
  const annotations = { 'org.opencontainers.image.ref.name': VERSION };
  const manifests = [{ ...add(manifest.mediaType, jsonOf(manifest)), annotations }];
  writeFileSync(join(layout, 'index.json'), jsonOf({ schemaVersion: 2, manifests }));
  writeFileSync(join(layout, 'oci-layout'), jsonOf({ imageLayoutVersion: '1.0.0' }));
}

const jsonOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
