/*
 * The plugin of kubectl for a release: an archive, and the manifest with which krew installs it. publisher.yaml says where it
 * will be downloaded from.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { packArchive } from '../image/archive.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { sha256Of } from './digest.ts';
import type { Publisher } from './publisher.ts';

const PLUGIN = 'kubectl-plegwatch';
const COMPLETION = 'kubectl_complete-plegwatch';
const ARCHIVE = `${PLUGIN}-${VERSION}.tar.gz`;

/** Writes both into a folder. The completion is that of the program in dist/. */
export function writePlugin(out: string, publisher: Publisher): void {
  const { dir: folder, remove } = temporaryFolder('plugin', undefined);
  try {
    copyFileSync(join(CHECKOUT, 'kubectl', PLUGIN), join(folder, PLUGIN));
    const cli = join(CHECKOUT, 'dist/cli.js');
    const completion = execFileSync(process.execPath, [cli, 'completion', 'kubectl']);
    writeFileSync(join(folder, COMPLETION), completion, { mode: 0o755 });
    copyFileSync(join(CHECKOUT, 'LICENSE'), join(folder, 'LICENSE'));
    const archive = join(folder, 'archive');
    packArchive(folder, archive);
    const data = gzipSync(readFileSync(archive));
    writeFileSync(join(out, ARCHIVE), data);
    writeFileSync(join(out, 'krew-plegwatch.yaml'), stringify(manifestOf(sha256Of(data), publisher)));
  } finally {
    remove();
  }
}

const manifestOf = (digest: string, { source, downloads }: Publisher) => ({
  apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
  kind: 'Plugin',
  metadata: { name: 'plegwatch' },
  spec: {
    version: `v${VERSION}`,
    ...(source !== '' && { homepage: source }),
    shortDescription: 'Show which container events were not delivered on which node',
    description:
      'Runs the commands of plegwatch in its pods: which events were missed, on which node, of which container, and what proves it.',
    platforms: [
      {
        selector: { matchExpressions: [{ key: 'os', operator: 'In', values: ['darwin', 'linux'] }] },
        uri: `${downloads || 'https://YOUR-RELEASES'}/${ARCHIVE}`,
        sha256: digest,
        bin: PLUGIN,
        files: [PLUGIN, COMPLETION, 'LICENSE'].map((from) => ({ from, to: '.' })),
      },
    ],
  },
});
