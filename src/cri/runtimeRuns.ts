/*
 * The real runtimes that were run beside an agent: which version, and where anybody can repeat that. A version that is not here was not
 * run; the simulator is none.
 */

/** Not in the registries from which the tests build theirs: it was built and watched by hand, and no test repeats that. */
export const BY_HAND = 'by hand';

export interface RuntimeRun {
  /** As the runtime names itself. */
  readonly name: string;
  readonly version: string;
  readonly ranIn: '`make test`' | '`make versions`' | typeof BY_HAND;
}

export const RUNTIME_RUNS: readonly RuntimeRun[] = [
  { name: 'containerd', version: '1.6.20', ranIn: '`make test`' },
  { name: 'containerd', version: '1.7.24', ranIn: '`make test`' },
  { name: 'containerd', version: '2.1.9', ranIn: '`make test`' },
  { name: 'containerd', version: '2.3.7', ranIn: '`make versions`' },
  { name: 'containerd', version: '2.4.2', ranIn: '`make test`' },
  { name: 'cri-o', version: '1.33.13', ranIn: BY_HAND },
  { name: 'cri-o', version: '1.36.3', ranIn: BY_HAND },
  { name: 'iSulad', version: '2.1.6', ranIn: BY_HAND },
];
