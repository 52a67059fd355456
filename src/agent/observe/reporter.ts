/*
 * The reporter: hands records to the sink, in the order in which facts were established, and counts them in the metrics.
 */
import type { RuntimeVersion } from '../../cri/profiles.ts';
import { monoNow } from '../../platform/clock.ts';
import type { Context, Known } from '../../protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { ComparisonOutput } from '../compare/emitter.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { NodeState } from './nodeState.ts';

export interface RecordSink {
  setContext(context: Omit<Context, 'no'>): void;
  append(record: EvidenceRecord, identity: ContainerIdentity | null): void;
  /** With the records until now these hold. */
  setKnown(known: Known): void;
}

interface ReporterOptions {
  readonly sink: RecordSink;
  readonly metrics: AgentMetrics;
  readonly comparison: Pick<Comparison, 'take'>;
  readonly nodeState: NodeState;
  readonly runtime: RuntimeVersion;
  readonly agentVersion: string;
  readonly config: Context['settings'];
}

export class Reporter {
  readonly #options: ReporterOptions;
  #runtime: RuntimeVersion;
  /** Empty until a kubelet reported its version. */
  #kubeletVersion = '';
  #beforeRecord: () => void = () => undefined;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#setContext();
  }

  isRuntime(runtime: RuntimeVersion): boolean {
    return runtime.name === this.#runtime.name && runtime.version === this.#runtime.version;
  }

  /** From here on records are about this runtime. Returns false if it is the same as before. */
  setRuntime(runtime: RuntimeVersion): boolean {
    if (this.isRuntime(runtime)) return false;
    this.#runtime = runtime;
    this.#setContext();
    return true;
  }

  setKubeletVersion(version: string): void {
    if (version === this.#kubeletVersion) return;
    this.#kubeletVersion = version;
    this.#setContext();
  }

  /** Called before each record but minutes, and before the versions change: what lasted until now ends here. */
  beforeRecord(listener: () => void): void {
    this.#beforeRecord = listener;
  }

  /** Something is about to happen that has no record of its own: as before a record, what was calm ends. */
  endCalm(): void {
    this.#beforeRecord();
  }

  setKnown(known: Known): void {
    this.#options.sink.setKnown(known);
  }

  report(record: EvidenceRecord, identity: ContainerIdentity | null = null): void {
    if (record.type !== 'relist_minute') this.#beforeRecord();
    this.#options.metrics.count(record);
    this.#options.sink.append(record, identity);
  }

  /** Reports what the comparison found, then the node's state if it changed. Returns the queries the comparison needs. */
  reportChanges(): Pick<ComparisonOutput, 'queries' | 'podQueries'> {
    const { comparison, metrics, nodeState } = this.#options;
    const { emissions, queries, podQueries } = comparison.take();
    for (const { record, object } of emissions) this.report(record, object);
    const state = nodeState.takeChange(monoNow());
    if (state !== null) {
      metrics.setStreamState(state.stream.state);
      this.report(state);
    }
    return { queries, podQueries };
  }

  #setContext(): void {
    this.#beforeRecord();
    const { sink, agentVersion, config } = this.#options;
    const { relistPeriod, overdueAfter, missedAfter, lateAfter } = config;
    const settings = { relistPeriod, overdueAfter, missedAfter, lateAfter };
    const { name, version } = this.#runtime;
    sink.setContext({
      runtime: { name, version },
      kubelet: this.#kubeletVersion,
      agent: agentVersion,
      settings,
    });
  }
}
