/*
 * The kubelets and containerds that `make versions` tries with each other: those that containerd's RELEASES.md recommends ("Kubernetes Support", as of
 * 2.4.2; for kubelets that it no longer names, "1.7.0+ for 1.26+" and "2.0.0+ for 1.30" of 2.0), a "+" taken for later minors too. 1.28 and 1.36 with 2.1
 * are not recommended: people run the first, and the other tests run the second.
 */
import type { ContainerdVersion } from '../localServices/where.ts';

export const PAIRS = {
  '1.28': ['1.7', '2.1'],
  '1.30': ['1.7', '2.1', '2.2'],
  '1.33': ['1.7', '2.1', '2.2'],
  '1.36': ['2.1', '2.2', '2.3', '2.4'],
  '1.37': ['2.3', '2.4'],
} as const satisfies Readonly<Record<string, readonly ContainerdVersion[]>>;

export const CONTAINERDS = [
  '1.7',
  '2.1',
  '2.2',
  '2.3',
  '2.4',
] as const satisfies readonly ContainerdVersion[];

export type TriedKubelet = keyof typeof PAIRS;
export type TriedContainerd = (typeof CONTAINERDS)[number];
