/*
 * Lets the program's modules be loaded without a build: their statements are in files of their own.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

registerHooks({
  load: (url, context, next) =>
    url.endsWith('.sql')
      ? {
          format: 'module',
          shortCircuit: true,
          source: `export default ${JSON.stringify(readFileSync(fileURLToPath(url), 'utf8'))}`,
        }
      : next(url, context),
});
