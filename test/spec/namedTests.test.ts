/*
 * The tests that pages name, as links whose text is the title, or the name of the file.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

interface Part {
  readonly heading: string;
  readonly text: string;
  /** Titles, each in its file. */
  readonly tests: readonly { readonly title: string; readonly source: string }[];
  /** Content of the files that are named as a whole. */
  readonly files: readonly string[];
}

/** The parts of a page that begin with this mark. */
function partsOf(page: string, mark: string): Part[] {
  const url = new URL(page, ROOT);
  const [, ...parts] = readFileSync(url, 'utf8').split(`\n${mark}`);
  return parts.map((text) => {
    const links = [...text.matchAll(/\[([^\]]+)\]\(([^)]+\.test\.ts)\)/g)].map(
      ([, title = '', file = '']) => ({
        title,
        isFile: title === basename(file),
        source: readFileSync(new URL(file, url), 'utf8'),
      }),
    );
    return {
      heading: text.split('\n')[0] ?? '',
      text,
      tests: links.filter(({ isFile }) => !isFile),
      files: links.filter(({ isFile }) => isFile).map(({ source }) => source),
    };
  });
}

const PARTS = {
  'SPEC.md': partsOf('SPEC.md', '### '),
  promises: partsOf('docs/explanation/promises.md', '- **'),
};

test.each(Object.entries(PARTS))('each part of %s names tests, all of which exist', (_page, parts) => {
  expect(parts.length).toBeGreaterThan(5);
  expect(parts.filter(({ tests }) => tests.length === 0).map(({ heading }) => heading)).toEqual([]);
  const missing = parts.flatMap(({ tests }) =>
    tests.filter(({ title, source }) => {
      const calls = source.replaceAll(/\(\s+/g, '(');
      return !calls.includes(`('${title}'`) && !calls.includes(`(\`${title}\``);
    }),
  );
  expect(missing.map(({ title }) => title)).toEqual([]);
});

test('each table of SPEC.md is driven by the test that it names', () => {
  const tables = PARTS['SPEC.md'].filter(({ text }) => text.includes('\n|'));
  expect(tables.length).toBeGreaterThan(5);
  const idle = tables.filter(
    ({ heading, files }) => !files.some((file) => file.includes(`drive('${heading}'`)),
  );
  expect(idle.map(({ heading }) => heading)).toEqual([]);
});
