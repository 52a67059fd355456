/*
 * The writes of several controllers to the API server, each through a proxy of its own: who held the Lease, and who wrote reports.
 */
import type { ApiFront } from './apiFront.ts';

interface ReportWrite {
  readonly name: string;
  /** Another controller held the Lease when the request came. */
  readonly isLate: boolean;
}

export class LeaderWrites {
  /** The last writer of the Lease, which holds it. */
  #holder: ApiFront | null = null;
  readonly #heldSince = new Map<ApiFront, number>();
  readonly #writes: ReportWrite[] = [];

  /** Listens to a controller. */
  add(front: ApiFront): void {
    front.listen((path, status, body, cameAt) => {
      if (status >= 300) return;
      if (path.includes('/leases/')) this.#takeLease(front, body);
      else if (path.includes('/plegreports/')) this.#takeReport(front, path, cameAt);
    });
  }

  /** How many controllers have held the Lease. */
  get holders(): number {
    return this.#heldSince.size;
  }

  /** How often a report was written: its object, and its status. */
  get reports(): number {
    return this.#writes.length;
  }

  /** How many reports a controller wrote although another one held the Lease. */
  get late(): number {
    return this.#writes.filter(({ isLate }) => isLate).length;
  }

  /** The reports of which a late write is what they say now. */
  uncorrected(): string[] {
    const last = new Map(this.#writes.map((write) => [write.name, write]));
    return [...last.values()].filter(({ isLate }) => isLate).map(({ name }) => name);
  }

  #takeLease(front: ApiFront, body: string): void {
    const holder = JSON.parse(body).spec?.holderIdentity ?? '';
    if (holder === '') return;
    if (this.#holder !== front) this.#heldSince.set(front, performance.now());
    this.#holder = front;
  }

  #takeReport(front: ApiFront, path: string, at: number): void {
    const name = /plegreports\/([^/?]+)/.exec(path)?.[1] ?? '';
    const others = [...this.#heldSince].filter(([other]) => other !== front).map(([, since]) => since);
    const own = this.#heldSince.get(front) ?? Number.NEGATIVE_INFINITY;
    // A write that came before another one took the Lease may be answered after that.
    const isLate = others.some((since) => since > own && since < at);
    this.#writes.push({ name, isLate });
  }
}
