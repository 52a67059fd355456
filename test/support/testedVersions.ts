/*
 * The versions that `make test` runs on. Everything that is true of all of them is tested with the newest pair alone; older ones are tested with
 * what only they show. `make versions` tries all others.
 *
 *   MAIN           kubelet 1.37, which uses events as hints, and containerd 2.4, which can stream its lists
 *   CACHE          kubelet 1.36, the last whose events fill its pod cache, and containerd 2.1: what a fallback is, what a lost event costs
 *   containerd 1.7 of which each event goes to one subscriber (runtimes, hungStatus, replacedRuntime)
 *   containerd 1.6 without events (runtimes, mode)
 */
export const MAIN = { minor: '1.37', containerd: '2.4' } as const;
/** Its kubelet is that of the API server. */
export const CACHE = { minor: undefined, containerd: '2.1' } as const;
