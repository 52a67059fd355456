/*
 * The version of plegwatch, from package.json, and the commit that it was built from. The bundler inlines both.
 */
import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;

/** Replaced by build.mjs; not defined where the sources run as they are. */
declare const PLEGWATCH_COMMIT: string | undefined;

export const COMMIT: string = typeof PLEGWATCH_COMMIT === 'string' ? PLEGWATCH_COMMIT : 'unknown';
