import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { CHECKOUT } from '../checkout.ts';
import { readTar } from './tar.ts';

const archive = (...files: readonly string[]): Buffer =>
  execFileSync('tar', ['--create', '--format=ustar', '--hard-dereference', ...files], { cwd: CHECKOUT });

test('an archive with two entries of one name is refused: readers differ in which of them they take', () => {
  expect([...readTar(archive('LICENSE', 'README.md')).keys()]).toEqual(['LICENSE', 'README.md']);
  expect(() => readTar(archive('LICENSE', './LICENSE'))).toThrow('two entries are called LICENSE');
});

test.each(['-0000001000', '0000000000z', ''])('an entry of the size %j is refused', (size) => {
  const tar = archive('LICENSE');
  tar.write(size.padEnd(12, '\0'), 124);
  expect(() => readTar(tar)).toThrow('not a tar file');
});

test('an archive that was cut off is refused', () => {
  expect(() => readTar(archive('LICENSE').subarray(0, 1024))).toThrow('LICENSE is cut off');
});
