/*
 * The page's own files: dist/ui, as the build made them. They are read once and served from memory, compressed.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { packageRoot } from '../platform/packageRoot.ts';

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
  readonly etag: string;
}

const FILES: Readonly<Record<string, readonly [path: string, type: string]>> = {
  'index.html': ['/', 'text/html; charset=utf-8'],
  'page.js': ['/page.js', 'text/javascript; charset=utf-8'],
  'page.css': ['/page.css', 'text/css; charset=utf-8'],
};

/** By the path of the request. A file that was not built is left out. */
export function readPage(folder = join(packageRoot() ?? '.', 'dist/ui')): ReadonlyMap<string, PageFile> {
  const found = Object.entries(FILES).filter(([name]) => existsSync(join(folder, name)));
  return new Map(
    found.map(([name, [path, type]]) => {
      const body = readFileSync(join(folder, name));
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
      return [path, { type, body, gzipped: gzipSync(body), etag }];
    }),
  );
}
