/*
 * The checkout that the development tools belong to; they run from source, inside it.
 */
import { join } from 'node:path';

export const CHECKOUT = join(import.meta.dirname, '..');
/** The built program. `make build` creates it. */
export const BUILT_CLI = join(CHECKOUT, 'dist/cli.js');
export const DEV_CLI = join(CHECKOUT, 'devtools/cli.ts');
