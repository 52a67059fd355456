/* What the bundled programs load: whatever they do not need costs every node memory. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bundledFiles } from '../../devtools/image/bundle.ts';
import { ROOT } from '../support/build.ts';

describe('the bundle', () => {
  it('never imports node:http, with which Node would load its fetch', () => {
    const programs = bundledFiles().filter((path) => path.endsWith('.js') && !path.startsWith('dist/ui/'));
    const importing = programs.filter((path) =>
      /from\s*"node:http"/.test(readFileSync(`${ROOT}${path}`, 'utf8')),
    );
    expect(importing).toEqual([]);
  });
});
