/*
 * Two projects: `unit` (beside the source, pure, fast) and `parts` (real Redis, Postgres, runtimes, API server).
 * The files of `parts` run one after another: they share the machine's two cores with the parts they start.
 */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** SQL statements live in files of their own and are imported as text, as the bundler does. */
const sqlAsText = {
  name: 'sql-as-text',
  load(id: string) {
    return id.endsWith('.sql') ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}` : null;
  },
};

export default defineConfig({
  plugins: [sqlAsText],
  test: {
    pool: 'forks',
    reporters: ['default', './test/support/closingLine.ts'],
    projects: [
      // Random histories take seconds, and a busy machine may take ten times as long.
      {
        extends: true,
        test: {
          name: 'unit',
          include: [
            'src/**/*.test.ts',
            'devtools/**/*.test.ts',
            'test/engine/**/*.test.ts',
            'test/torture/**/*.test.ts',
          ],
          testTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/integration/**/*.test.ts', 'test/kubelet/**/*.test.ts'],
          globalSetup: ['test/support/build.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
