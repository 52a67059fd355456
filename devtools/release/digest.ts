/*
 * The digests of files, as sha256sum prints them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
