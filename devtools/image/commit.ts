/*
 * The commit that is built: its time dates what is built, so that building it again gives the same bytes.
 */
import { execFileSync } from 'node:child_process';
import { CHECKOUT } from '../checkout.ts';

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-C', CHECKOUT, ...args], { encoding: 'utf8' }).trim();

export const isDirty = (): boolean => git('status', '--porcelain', '--untracked-files=normal') !== '';
export const commitId = (): string => git('rev-parse', 'HEAD');
/** The commit's id, and whether the checkout differs from it. */
export const revision = (): string => commitId() + (isDirty() ? '-dirty' : '');
/** ISO 8601. */
export const commitTime = (): string =>
  new Date(Number(git('log', '-1', '--format=%ct')) * 1000).toISOString();
