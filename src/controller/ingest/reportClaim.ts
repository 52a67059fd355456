/*
 * Whether another controller writes the reports of this cluster too: only one may. Controllers find each other where they meet: in the flow
 * settings of one Redis, and in one database, where each run says regularly that it writes the reports.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../platform/log.ts';
import claimReportsSql from '../../store/sql/claimReports.sql';
import type { Store } from '../../store/store.ts';

/** One run of a controller that writes the reports of a cluster, as its database has it. */
export class ReportClaim {
  readonly #store: Pick<Store, 'run'>;
  readonly #clusterId: number;
  readonly #run = randomUUID();
  #hasClaimed = false;

  constructor(store: Pick<Store, 'run'>, clusterId: number) {
    this.#store = store;
    this.#clusterId = clusterId;
  }

  /** Returns whether another controller has claimed the reports since this one last did. */
  async renew(): Promise<boolean> {
    const values = [this.#clusterId, this.#run, this.#hasClaimed];
    const { rows } = await this.#store.run<{ isContested: boolean }>({ text: claimReportsSql }, values);
    this.#hasClaimed = true;
    return rows[0]?.isContested ?? false;
  }

  /** Another replica leads, which is no conflict: false. */
  leave(): false {
    this.#hasClaimed = false;
    return false;
  }
}

type MeetingPlace = 'Redis' | 'database';

export interface ConflictNoticeOptions {
  readonly log: Logger;
  /** Called when it becomes known, and when it ends. */
  readonly onChange: (isContested: boolean) => void;
}

/** Says once that another controller was found, and where. */
export class ConflictNotice {
  readonly #options: ConflictNoticeOptions;
  readonly #places = new Set<MeetingPlace>();

  constructor(options: ConflictNoticeOptions) {
    this.#options = options;
  }

  note(place: MeetingPlace, isContested: boolean): void {
    const { log, onChange } = this.#options;
    if (isContested && !this.#places.has(place)) {
      const cure = 'Uninstall one of the releases, or give each Kubernetes cluster a name of its own.';
      log.warn({ shared: place, cure }, 'another controller of this cluster writes the same reports');
    }
    if (isContested) this.#places.add(place);
    else this.#places.delete(place);
    onChange(this.#places.size > 0);
  }
}
