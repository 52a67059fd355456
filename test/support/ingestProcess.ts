/*
 * Runs ingest in a separate process, so that a test can kill it.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

interface IngestProcess {
  /** Sends SIGKILL; returns when the process has ended. */
  kill(): Promise<void>;
}

export interface IngestProgram {
  start(databaseUrl: string, redisUrl: string): Promise<IngestProcess>;
  remove(): void;
}

/** Bundles ingest as the release does: one file, with SQL as text. */
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
          const exited = once(child, 'exit');
          child.kill('SIGKILL');
          await exited;
        },
      };
    },
    remove: () => rmSync(dir, { recursive: true }),
  };
}
