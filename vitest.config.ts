/*
 * Projects, by what they need: `unit`, `unit-alone` (quick) and `integration` (processes, Redis, Postgres, runtimes, API server) are `make test`;
 * `kubelet` (real kubelets), `release` (what users install: chart, image, signed release) and `cluster` (a whole cluster) have targets named after
 * them; `versions` is `make versions`, `spark` is `make lake`. Files run side by side: every one starts services of its own, on ports, folders and control
 * groups of its own.
 */
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { matchesGlob } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** SQL statements, and the page of questions, are files of their own that are imported as text, as the bundler does. */
const filesAsText = {
  name: 'files-as-text',
  load(id: string) {
    return /\.(sql|md)$/.test(id) ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}` : null;
  },
};

const KUBELET = ['test/kubelet/**/*.test.ts'];
const RELEASE = ['test/release/**/*.test.ts'];
const VERSIONS = ['test/versions/**/*.test.ts'];
const SPARK = ['test/spark/**/*.test.ts'];
const CLUSTER = ['test/cluster/**/*.test.ts'];
const INTEGRATION = [
  'test/integration/**/*.test.ts',
  // Beside their source, and yet with sockets and processes that take their time.
  'src/agent/observe/{observer,relister}.test.ts',
  'src/agent/observe/stream/subscription*.test.ts',
  'src/cri/listCall.test.ts',
];
const SLOW = [...INTEGRATION, ...KUBELET, ...RELEASE, ...VERSIONS, ...SPARK, ...CLUSTER];

/**
 * Unit tests that replace clocks, modules or methods (`vi`) have a process of their own for each file. The others share a few processes: to start one
 * takes longer than most files. Files of `integration`, `kubelet` and `release` share processes too: to load all packages takes 2 s of a processor.
 */
const ALONE = globSync('{src,devtools,bench,test}/**/*.test.ts').filter(
  (file) => /\bvi\./.test(readFileSync(file, 'utf8')) && !SLOW.some((pattern) => matchesGlob(file, pattern)),
);

/**
 * The files that take minutes: started last they would keep one worker busy after all others ended. The longest are first, and those that mostly wait are beside
 * those that work.
 */
const LONG = [
  'kubelet/statusLagOfKubelet',
  'integration/scenarios',
  'integration/freeze',
  'kubelet/podsApi',
  'kubelet/demo',
  'kubelet/plegUnhealthy',
  'release/release',
  'integration/runtimes',
  'engine/comparison.property',
  'integration/settings',
  'integration/fullRedis',
  'kubelet/mode',
  'simulation/delivery.property',
  'integration/endToEnd',
  'integration/fuzzAgent',
  'integration/fleetCommands',
  'engine/audit.property',
  'integration/audit',
  'integration/exportLake',
  'integration/lake',
  'integration/agentEnds',
  'release/chartOnApiServer',
  'integration/disorder',
  'integration/tamperEvidence',
  'integration/outage',
  'integration/hungList',
  'integration/unknownReports',
  'integration/doctor',
  'integration/attribution',
];

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((name) => moduleId.endsWith(`test/${name}.test.ts`));
      return at === -1 ? LONG.length : at;
    };
    // A process can be shared only by files of one project, one after another.
    return (await super.sort(files)).sort(
      (a, b) => rank(a) - rank(b) || a.project.name.localeCompare(b.project.name),
    );
  }
}

/** More workers than processors: tests wait for timers, relists and other processes. */
const maxWorkers = availableParallelism() + 5;

/** Waits have deadlines of their own; these bounds only end a test that hangs on a busy machine. */
const services = {
  globalSetup: ['test/support/build.ts', 'test/support/preparedPostgres.ts'],
  setupFiles: ['test/support/processorTime.ts'],
  testTimeout: 600_000,
  hookTimeout: 300_000,
};

export default defineConfig({
  plugins: [filesAsText],
  test: {
    pool: 'forks',
    maxWorkers,
    testTimeout: 300_000,
    reporters: ['default', './test/support/closingLine.ts'],
    sequence: { sequencer: LongFilesFirst },
    // An oracle answers with lists of sentences: the closing line shows the first.
    chaiConfig: { truncateThreshold: 2_000 },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          isolate: false,
          // All that the others leave: so every test file is in exactly one project, wherever it is.
          include: ['**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...ALONE, ...SLOW],
        },
      },
      {
        extends: true,
        test: { name: 'unit-alone', include: ALONE },
      },
      {
        extends: true,
        test: {
          ...services,
          name: 'integration',
          isolate: false,
          include: INTEGRATION,
        },
      },
      {
        extends: true,
        test: { ...services, name: 'kubelet', isolate: false, include: KUBELET },
      },
      {
        extends: true,
        test: {
          ...services,
          name: 'release',
          isolate: false,
          include: RELEASE,
          globalSetup: [...services.globalSetup, 'test/support/sharedImage.ts'],
        },
      },
      {
        extends: true,
        test: { ...services, name: 'spark', include: SPARK, hookTimeout: 1_200_000 },
      },
      {
        extends: true,
        test: {
          ...services,
          name: 'versions',
          include: VERSIONS,
          globalSetup: [...services.globalSetup, 'test/versions/results.ts'],
        },
      },
      {
        extends: true,
        test: {
          ...services,
          name: 'cluster',
          include: CLUSTER,
          globalSetup: [...services.globalSetup, 'test/cluster/image.ts'],
          testTimeout: 1_200_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
});
