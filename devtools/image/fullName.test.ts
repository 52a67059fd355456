/* Names of images, as containerd completes them: github.com/distribution/reference, normalize.go, splitDockerDomain. */
import { expect, test } from 'vitest';
import { fullName } from './fullName.ts';

test.each([
  ['plegwatch:1', 'docker.io/library/plegwatch:1'],
  ['team/plegwatch:1', 'docker.io/team/plegwatch:1'],
  ['localhost/plegwatch:1', 'localhost/plegwatch:1'],
  ['registry.example/plegwatch:1', 'registry.example/plegwatch:1'],
  ['registry:5000/team/plegwatch:1', 'registry:5000/team/plegwatch:1'],
])('the name %s is completed to %s', (short, full) => {
  expect(fullName(short)).toBe(full);
});
