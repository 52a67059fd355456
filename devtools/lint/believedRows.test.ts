/*
 * The lint rule against rows whose type nobody checks, on a file that breaks it.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';

const place = temporaryFolder('lint', undefined);
afterAll(() => place.remove());

/** Lints a text as a file of the product, with the project's configuration, and returns the lines that the rule refuses. */
function refusedLines(text: string): number[] {
  const { vcs: _, ...configuration } = JSON.parse(readFileSync('biome.json', 'utf8'));
  writeFileSync(join(place.dir, 'biome.json'), JSON.stringify(configuration));
  cpSync('devtools/lint', join(place.dir, 'devtools/lint'), { recursive: true });
  mkdirSync(join(place.dir, 'src'), { recursive: true });
  writeFileSync(join(place.dir, 'src/example.ts'), text);
  const { stdout, error } = spawnSync(
    resolve('node_modules/.bin/biome'),
    ['lint', 'src/example.ts', '--reporter=github', '--max-diagnostics=50'],
    { cwd: place.dir, encoding: 'utf8' },
  );
  if (error !== undefined) throw error;
  const found = stdout.split('\n').filter((line) => line.includes('The type of a row is believed'));
  return found.map((line) => Number(/line=(\d+)/.exec(line)?.[1])).sort((a, b) => a - b);
}

const BREAKS = [
  'export const a = await store.run<{ n: number }>(readNodes);',
  "export const b = await client.query<{ n: number }>('SELECT 1');",
  'export const c = sql<string>`now()`;',
  'export const d = (await store.run(readNodes)).rows as readonly { n: number }[];',
  "export const e = await db.execute<{ n: number }>('SELECT 1');",
  'export const f = result.rows as readonly number[];',
  'export const { rows: g } = (await store.run(readNodes)) as { rows: number[] };',
];

test('a row with a type argument or a cast is refused', () => {
  expect(refusedLines(`${BREAKS.join('\n')}\n`)).toEqual(BREAKS.map((_, index) => index + 1));
});

test('a statement that is bound to its row, and a typed expression, are accepted', () => {
  const text = [
    'export const { rows } = await store.run(readNodes, [1]);',
    'export const found = await store.query((db) => db.select().from(nodes));',
    'export const now = typed(timestamptz, sql`now()`);',
  ].join('\n');
  expect(refusedLines(`${text}\n`)).toEqual([]);
});
