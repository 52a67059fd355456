import { expect, test } from 'vitest';
import { whyEmpty } from './unobserved.ts';

test('everything is said to be observed of no node that was not looked at', () => {
  expect(whyEmpty(3, 3, 0)).toBe('Everything is observed of every node.');
  expect(whyEmpty(20_005, 20_000, 0)).toBe(
    'Everything is observed of the 20000 nodes that were looked at; 5 more were not.',
  );
  expect(whyEmpty(0, 0, 0)).toBe('No node is known.');
  expect(whyEmpty(3, 3, 1)).toBeNull();
});
