/*
 * Leads when it is this controller's turn: by a Lease, or always.
 */
import type { KubeClient } from '../../kube/client.ts';
import type { Store } from '../../store/store.ts';
import type { ReportWriter } from '../reports/writer.ts';
import { startElection } from './election.ts';
import { lead } from './leadership.ts';
import { type LeaderWork, type LeaderWorkOptions, startLeaderWork } from './leaderWork.ts';

export interface Leading {
  /** Null unless this controller leads. */
  reportWriter(): ReportWriter | null;
  stop(): Promise<void>;
}

/** Leads while this controller holds the Lease; without a Lease, always. */
export function startLeading(parts: LeaderWorkOptions): Leading {
  const { config, kube, ingest, metrics, log } = parts;
  let work: LeaderWork | null = null;
  const start = (store: Store, client: KubeClient) => {
    const started = startLeaderWork({ ...parts, store, kube: client });
    work = started;
    return async () => {
      await started.stop();
      work = null;
    };
  };
  const onContested = (isContested: boolean) => metrics.controllerConflict.set(isContested ? 1 : 0);
  const leadership = { ...parts, cluster: config.cluster, start, onContested };
  const reportWriter = () => work?.reportWriter ?? null;
  if (config.lease !== undefined) {
    const election = startElection({
      kube,
      lease: config.lease,
      log,
      isFit: () => ingest.health().database,
      lead: (signal, holds) => lead(leadership, signal, holds),
    });
    return { reportWriter, stop: () => election.stop() };
  }
  const stopping = new AbortController();
  const led = lead(leadership, stopping.signal, () => true);
  return {
    reportWriter,
    async stop() {
      stopping.abort();
      await led;
    },
  };
}
