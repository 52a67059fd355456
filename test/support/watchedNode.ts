/*
 * A node whose runtime a real agent watches, with its rows in the store.
 */

import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { run } from '../../devtools/localServices/process.ts';
import type { PodDriver } from '../../devtools/simulator/podDriver.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import type { EventType } from '../../src/protocol/record.ts';
import { CLI } from './build.ts';
import { churnUntil } from './churn.ts';
import { disordered, eventKey, type Listener } from './listener.ts';
import { CLUSTER, metric, type System } from './system.ts';
import { waitFor } from './waitFor.ts';

export interface GapRow {
  readonly [column: string]: unknown;
  readonly cause: string;
  /** Wall clock in milliseconds, with fractions. */
  readonly from: number;
  readonly to: number | null;
}

/** A finding, and what it rests on: a test that fails prints it. */
export interface Accusation {
  readonly [column: string]: unknown;
  /** Its kind, the type of its event and its cause. */
  readonly finding: string;
  /** The event as an {@link eventKey}. */
  readonly event: string;
}

export interface SessionRow {
  readonly [column: string]: unknown;
  readonly opened: number;
  readonly armed: number | null;
  readonly closed: number | null;
  readonly code: string | null;
  readonly events: number;
  readonly version: string;
}

export class WatchedNode {
  readonly name: string;
  readonly agent: LocalPlegwatch;
  readonly #system: System;

  constructor(system: System, name: string, agent: LocalPlegwatch) {
    this.#system = system;
    this.name = name;
    this.agent = agent;
  }

  /** The state of its stream in the store. */
  async streamState(): Promise<string | undefined> {
    const rows = await this.#system.sql<{ state: string }>(
      'SELECT stream_state AS state FROM plegwatch.nodes WHERE node = $1',
      this.name,
    );
    return rows[0]?.state;
  }

  /** Waits until the report shows this state of the stream. */
  streamIs(state: string): Promise<ReportStatus> {
    return waitFor(`${this.name} is ${state}`, async () => {
      // A statement costs less than the command.
      if ((await this.streamState()) !== state) return undefined;
      const report = await this.report();
      return report?.stream?.state === state ? report : undefined;
    });
  }

  /** Runs pods until the stream is Active: nothing but an event proves a subscription. */
  armed(pods: PodDriver): Promise<true> {
    return churnUntil(
      pods,
      `the stream of ${this.name} is Active`,
      async () => (await this.streamState()) === 'Active',
    );
  }

  /** The node's report from SQL; undefined before the first one. */
  async report(): Promise<ReportStatus | undefined> {
    const list: { items: { metadata: { name: string }; status: ReportStatus }[] } = JSON.parse(
      await this.#reportCommand('json'),
    );
    return list.items.find(({ metadata }) => metadata.name === this.name)?.status;
  }

  /** Its PLEGReport in Kubernetes. Throws if there is none. */
  publishedReport(): Promise<ReportStatus> {
    return this.#system.publishedReport(this.name);
  }

  /** The node's line of the printed table; empty if there is none. */
  async row(): Promise<string> {
    const table = await this.#reportCommand('table');
    return table.split('\n').find((line) => line.startsWith(`${this.name} `)) ?? '';
  }

  #reportCommand(output: string): Promise<string> {
    const { url } = this.#system.postgres;
    const args = ['report', '--cluster', CLUSTER, '--database-url', url, '-o', output];
    return run(process.execPath, [CLI, ...args]);
  }

  /** Waits until a relist that began after this call has been compared. */
  relisted(): Promise<void> {
    return relisted(this.agent);
  }

  /** Waits until every event is judged and every record is stored. */
  settled(): Promise<void> {
    return settled(this.agent);
  }

  /** Every event in the store in the order in which it was received, as {@link eventKey}. */
  async events(): Promise<string[]> {
    return this.#eventKeys('');
  }

  /** Those of them that were announced to this subscription and not replayed to it. */
  async liveEvents(): Promise<string[]> {
    return this.#eventKeys('AND NOT replayed');
  }

  async #eventKeys(where: string): Promise<string[]> {
    const rows = await this.#system.sql<{ container_id: string; event_type: EventType }>(
      `SELECT container_id, event_type FROM plegwatch.container_events
        WHERE node = $1 ${where} ORDER BY received_at, seq`,
      this.name,
    );
    return rows.map(({ container_id, event_type }) => eventKey(container_id, event_type));
  }

  /** The events with an out_of_order finding, as {@link eventKey}. */
  async outOfOrderFindings(): Promise<string[]> {
    const rows = await this.#system.sql<{ container_id: string; event_type: EventType }>(
      `SELECT container_id, event_type FROM plegwatch.findings WHERE node = $1 AND kind = 'out_of_order'`,
      this.name,
    );
    return rows.map(({ container_id, event_type }) => eventKey(container_id, event_type));
  }

  /** When the first event after this moment was received. */
  async firstEventAfter(moment: number): Promise<number | null> {
    const [row] = await this.#system.sql<{ at: number | null }>(
      `SELECT (extract(epoch FROM min(received_at)) * 1000)::float8 AS at FROM plegwatch.container_events
        WHERE node = $1 AND received_at > to_timestamp($2::float8 / 1000)`,
      this.name,
      moment,
    );
    return row?.at ?? null;
  }

  /** When the last event was received. */
  async lastEvent(): Promise<number> {
    const [row] = await this.#system.sql<{ at: number }>(
      `SELECT (extract(epoch FROM max(received_at)) * 1000)::float8 AS at FROM plegwatch.container_events WHERE node = $1`,
      this.name,
    );
    return row?.at ?? 0;
  }

  /** From when to when the stream was starved. */
  starvations(): Promise<{ readonly from: number; readonly to: number | null }[]> {
    return this.#system.sql(
      `SELECT (extract(epoch FROM window_from) * 1000)::float8 AS "from", (extract(epoch FROM resolved_at) * 1000)::float8 AS "to"
         FROM plegwatch.findings WHERE node = $1 AND kind = 'silent_stream' AND cause = 'starved' ORDER BY window_from`,
      this.name,
    );
  }

  /** The misses, and the hint in their proof. */
  missed(): Promise<{ readonly hint: string | null; readonly resolved: boolean }[]> {
    return this.#system.sql(
      `SELECT proof ->> 'hint' AS hint, resolved_at IS NOT NULL AS resolved
         FROM plegwatch.findings WHERE node = $1 AND kind = 'missed'`,
      this.name,
    );
  }

  async eventsUntil(moment: number): Promise<number> {
    const [row] = await this.#system.sql<{ count: number }>(
      `SELECT count(*)::int AS count FROM plegwatch.container_events
        WHERE node = $1 AND received_at <= to_timestamp($2::float8 / 1000)`,
      this.name,
      moment,
    );
    return row?.count ?? 0;
  }

  gaps(scope: string): Promise<GapRow[]> {
    return this.#system.sql<GapRow>(
      `SELECT cause, (extract(epoch FROM from_at) * 1000)::float8 AS "from", (extract(epoch FROM to_at) * 1000)::float8 AS "to"
         FROM plegwatch.gaps WHERE node = $1 AND scope = $2 ORDER BY from_at`,
      this.name,
      scope,
    );
  }

  sessions(): Promise<SessionRow[]> {
    return this.#system.sql<SessionRow>(
      `SELECT (extract(epoch FROM opened_at) * 1000)::float8 AS opened, (extract(epoch FROM armed_at) * 1000)::float8 AS armed,
              (extract(epoch FROM closed_at) * 1000)::float8 AS closed, code, events::int4 AS events, runtime_version AS version
         FROM plegwatch.stream_sessions WHERE node = $1 ORDER BY opened_at`,
      this.name,
    );
  }

  /** The states of an id that relists found, in order. */
  async changes(id: string): Promise<string[]> {
    const rows = await this.#system.sql<{ state: string }>(
      `SELECT new_state AS state FROM plegwatch.relist_changes WHERE node = $1 AND container_id = $2 ORDER BY window_to`,
      this.name,
      id,
    );
    return rows.map(({ state }) => state);
  }

  /**
   * The findings that accuse the runtime: not `unobservable`, which accuses nobody, nor `short_life`, which is a limit of relisting.
   * With an id only those about it.
   */
  accusations(id?: string): Promise<Accusation[]> {
    return this.#system.sql<Accusation>(
      `SELECT concat_ws(' ', kind, event_type, cause) AS finding, concat_ws(' ', container_id, event_type) AS event,
              container_name AS container, window_from AS "from", window_to AS "to", detected_at AS detected, proof
         FROM plegwatch.findings
        WHERE node = $1 AND ($2::text IS NULL OR container_id = $2) AND kind NOT IN ('unobservable', 'short_life') ORDER BY 1, 2`,
      this.name,
      id ?? null,
    );
  }

  /** The kinds of the findings; with an id only those about it. */
  async findings(id?: string): Promise<string[]> {
    const rows = await this.#system.sql<{ finding: string }>(
      `SELECT concat_ws(' ', kind, event_type, cause) AS finding FROM plegwatch.findings
        WHERE node = $1 AND ($2::text IS NULL OR container_id = $2) ORDER BY 1`,
      this.name,
      id ?? null,
    );
    return rows.map(({ finding }) => finding);
  }
}

async function relisted(agent: LocalPlegwatch): Promise<void> {
  const count = async () => (await metric(agent, 'plegwatch_relist_duration_seconds_count')) ?? 0;
  const before = await count();
  // The first one that ends may have begun before the call.
  await waitFor('more relists', async () => (await count()) >= before + 2);
}

/** Waits until every event of an agent is judged and every record is stored. */
export async function settled(agent: LocalPlegwatch): Promise<void> {
  await relisted(agent);
  for (const name of ['plegwatch_pending_events', 'plegwatch_unacked_records']) {
    await waitFor(`${name} is 0`, async () => (await metric(agent, name)) === 0);
  }
}

/**
 * Without what this subscriber confirms. For a miss: it received the CREATED of the container, and not the missed event. A busy containerd 2
 * may lose the STOPPED of a sandbox: it announces it only if the sandbox was not removed before it gets to it
 * (internal/cri/server/events.go, startSandboxExitMonitor). For an event out of order: it received it after a later stage too, as a busy containerd
 * may announce the stop of a container after its removal.
 */
export function unconfirmedBy({ received }: Listener, accusations: readonly Accusation[]): Accusation[] {
  const all = new Set(received);
  const late = new Set(disordered(received));
  return accusations.filter(({ finding, event }) => {
    if (finding.startsWith('out_of_order ')) return !late.has(event);
    const [id = ''] = event.split(' ');
    return !(finding.startsWith('missed ') && all.has(eventKey(id, 'CREATED')) && !all.has(event));
  });
}
