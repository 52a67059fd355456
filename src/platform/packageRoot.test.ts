import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageRoot } from './packageRoot.ts';

let outer: string;

beforeEach(() => {
  outer = mkdtempSync(join(tmpdir(), 'package-root-'));
});
afterEach(() => rmSync(outer, { recursive: true }));

const writeManifest = (dir: string, name: string): void => {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name }));
};

test('the package root is the nearest folder above with a package.json of plegwatch, whatever packages lie between', () => {
  writeManifest(outer, 'plegwatch');
  const inner = join(outer, 'node_modules', 'other');
  writeManifest(inner, 'other');
  expect(packageRoot(inner)).toBe(outer);
});

test('there is no package root above a program that was moved away from its package', () => {
  expect(packageRoot(outer)).toBeNull();
});
