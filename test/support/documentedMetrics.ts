/*
 * The metrics that docs/reference/metrics.md promises.
 */
import { readFileSync } from 'node:fs';

export interface DocumentedMetric {
  readonly name: string;
  readonly labels: readonly string[];
  readonly type: string;
}

const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');

export function documentedMetrics(part: 'Agent' | 'Controller' | 'Page'): DocumentedMetric[] {
  const text = page.split('## ').find((each) => each.startsWith(part)) ?? '';
  return [...text.matchAll(/^\| `(plegwatch_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|/gm)].map(
    ([, name = '', labels, type = '']) => ({ name, labels: labels?.split(',') ?? [], type }),
  );
}
