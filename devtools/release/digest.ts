/*
 * The digests of files, as sha256sum prints them.
 */
import { createHash } from 'node:crypto';

export const sha256Of = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
