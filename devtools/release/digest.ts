/*
 * The digests of files, as sha256sum prints them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const sha256Of = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
export const sha256 = (file: string): string => sha256Of(readFileSync(file));
