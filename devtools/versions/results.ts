/*
 * The result file of `make versions`: what real kubelets and containerds showed. Only runs are in it; a pair without one was not run.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';

export const RESULTS_FILE = fileURLToPath(new URL('results.json', import.meta.url));

const SituationSchema = v.object({
  name: v.string(),
  /** The mode that plegwatch reported, and since when: the two scrapes between which it changed. */
  said: v.string(),
  since: v.nullable(v.tuple([v.string(), v.string()])),
  /** Evidence from the kubelet's log, the proxies, the independent listener or lists of the test's own. */
  truth: v.string(),
});

const PairRunSchema = v.object({
  scenario: v.picklist(['pair', 'upgrade']),
  /** Minor versions; those of an upgrade in their order. */
  kubelet: v.string(),
  containerd: v.string(),
  /** The whole versions, and the digests of the programs. */
  versions: v.object({ kubelet: v.array(v.string()), containerd: v.array(v.string()) }),
  digests: v.object({ kubelet: v.array(v.string()), containerd: v.array(v.string()) }),
  date: v.string(),
  seconds: v.number(),
  passed: v.boolean(),
  situations: v.array(SituationSchema),
});

export type Situation = v.InferOutput<typeof SituationSchema>;
export type PairRun = v.InferOutput<typeof PairRunSchema>;

const ResultsSchema = v.object({ generatedBy: v.literal('make versions'), runs: v.array(PairRunSchema) });

export const readResults = (): PairRun[] =>
  v.parse(ResultsSchema, JSON.parse(readFileSync(RESULTS_FILE, 'utf8'))).runs;

export const compareRuns = (a: PairRun, b: PairRun): number =>
  a.scenario.localeCompare(b.scenario) ||
  compareVersions(a.kubelet, b.kubelet) ||
  compareVersions(a.containerd, b.containerd);

/** By their numbers: 1.9 is before 1.10. */
export const compareVersions = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true });
