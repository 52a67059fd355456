/*
 * Ingest in a process of its own, so that a test can kill it.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

interface IngestProcess {
  /** kill -9; returns when it is gone. */
  kill(): Promise<void>;
}

export interface IngestProgram {
  start(databaseUrl: string, redisUrl: string): Promise<IngestProcess>;
  remove(): void;
}

/** Bundles ingest as the release does: SQL as text, everything in one file. */
export async function buildIngestProgram(): Promise<IngestProgram> {
  const dir = mkdtempSync(join(tmpdir(), `plegwatch-ingest-${process.pid}-`));
  const file = join(dir, 'ingest.cjs');
  await build({
    entryPoints: [fileURLToPath(new URL('./ingestMain.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    outfile: file,
    loader: { '.sql': 'text' },
    external: ['pg-native'],
    logOverride: { 'empty-import-meta': 'silent' },
    logLevel: 'error',
  });
  return {
    async start(databaseUrl, redisUrl) {
      const child = spawn(process.execPath, [file, databaseUrl, redisUrl], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(child.stdout, 'data');
      return {
        async kill() {
          const gone = once(child, 'exit');
          child.kill('SIGKILL');
          await gone;
        },
      };
    },
    remove: () => rmSync(dir, { recursive: true }),
  };
}
