/*
 * The version of this program, from package.json; the bundler puts the text in.
 */
import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;
