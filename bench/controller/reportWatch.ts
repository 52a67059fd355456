/*
 * The PLEGReports as somebody sees them who watches them: when each was written, and whether it said anything new.
 */
import { type KubeClient, pagesOf } from '../../src/kube/client.ts';
import { type KubeObject, PLEG_REPORTS } from '../../src/kube/object.ts';

const LASTS_SECONDS = 3_600;

interface SeenWrite {
  readonly name: string;
  /** By performance.now(). */
  readonly at: number;
  readonly isFirst: boolean;
  /** Whether it said anything else than before but figures that grow all the time. */
  readonly isNews: boolean;
}

export class ReportWatch {
  readonly #stop = new AbortController();
  readonly #said = new Map<string, string>();
  readonly #observedAt = new Map<string, unknown>();
  readonly #modeAt = new Map<string, number>();
  readonly #writes: SeenWrite[] = [];
  readonly #watching: Promise<void>;

  private constructor(kube: KubeClient, reports: readonly KubeObject[], resourceVersion: string) {
    for (const report of reports) this.#note(report);
    this.#writes.length = 0;
    this.#watching = this.#watch(kube, resourceVersion);
  }

  static async start(kube: KubeClient): Promise<ReportWatch> {
    const reports: KubeObject[] = [];
    let version = '';
    for await (const { items, resourceVersion } of pagesOf(kube, PLEG_REPORTS, {})) {
      reports.push(...items);
      version = resourceVersion;
    }
    return new ReportWatch(kube, reports, version);
  }

  get count(): number {
    return this.#said.size;
  }

  /** When this report first said that the mode is Fallback, by performance.now(). */
  fellBackAt(name: string): number | undefined {
    return this.#modeAt.get(name);
  }

  writesSince(at: number): readonly SeenWrite[] {
    return this.#writes.filter((write) => write.at >= at);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  async #watch(kube: KubeClient, resourceVersion: string): Promise<void> {
    const { signal } = this.#stop;
    try {
      const options = { resourceVersion, timeoutSeconds: LASTS_SECONDS, signal };
      for await (const { type, object } of kube.watch(PLEG_REPORTS, options)) {
        if (type === 'ADDED' || type === 'MODIFIED') this.#note(object);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** A report is written in two requests; the second one has its status. */
  #note({ metadata: { name }, ...object }: KubeObject): void {
    const status: unknown = object['status'];
    if (typeof status !== 'object' || status === null) return;
    const { observedAt, completeThrough, observed24h, relist, ...said } = status as Record<string, unknown>;
    if (this.#observedAt.get(name) === observedAt) return;
    const at = performance.now();
    const text = JSON.stringify(said);
    const before = this.#said.get(name);
    this.#observedAt.set(name, observedAt);
    this.#said.set(name, text);
    if (said['mode'] === 'Fallback' && !this.#modeAt.has(name)) this.#modeAt.set(name, at);
    this.#writes.push({ name, at, isFirst: before === undefined, isNews: before !== text });
  }
}
