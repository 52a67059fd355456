/*
 * The version of plegwatch, from package.json, which the bundler inlines.
 */
import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;
