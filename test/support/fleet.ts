/*
 * Several nodes whose pods come and go: of each a simulated runtime and an agent. At the end the store has exactly what the
 * truths of the runtimes say was delivered, each event once.
 */
import { expect } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { metric, type System } from './system.ts';
import { waitFor } from './waitFor.ts';

/** Long enough for any backoff to have passed, at a busy machine. */
export const BACK_WITHIN_MS = 60_000;
/** Pods of a node that live at the same time. */
const LIVING = 4;

export interface FleetNode {
  readonly name: string;
  readonly runtime: SimulatedRuntime;
  readonly agent: LocalPlegwatch;
}

export class Fleet {
  readonly nodes: readonly FleetNode[];
  readonly #system: System;
  #timers: NodeJS.Timeout[] = [];
  #pods = 0;

  private constructor(system: System, nodes: readonly FleetNode[]) {
    this.#system = system;
    this.nodes = nodes;
  }

  /** Every agent listens and is ready. */
  static async start(
    system: System,
    names: readonly string[],
    settings: Record<string, string>,
  ): Promise<Fleet> {
    const nodes: FleetNode[] = [];
    const fleet = new Fleet(system, nodes);
    try {
      for (const [i, name] of names.entries()) {
        const runtime = await startSimulatedRuntime({ socket: system.folder(`${name}.sock`), seed: i });
        const agent = await system.agent(name, runtime.socket, settings).catch(async (error: unknown) => {
          await runtime.stop();
          throw error;
        });
        nodes.push({ name, runtime, agent });
      }
      for (const node of nodes) await waitFor('it listens', () => node.runtime.subscribers > 0 || undefined);
      for (const { runtime } of nodes) runtime.runPod({ name: 'first', containers: ['app'] });
      await fleet.saysReady();
      return fleet;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  get agents(): LocalPlegwatch[] {
    return this.nodes.map(({ agent }) => agent);
  }

  /** Lets a pod come and another go, on every node, until `still`. */
  live(everyMs: number): void {
    this.#timers = this.nodes.map(({ runtime }) =>
      setInterval(() => {
        this.#pods += 1;
        runtime.runPod({ name: `pod-${this.#pods}`, namespace: 'shop', containers: ['app'] });
        const [oldest] = runtime.pods.sandboxes.keys();
        if (runtime.pods.sandboxes.size > LIVING && oldest !== undefined) runtime.removePod(oldest);
      }, everyMs),
    );
  }

  still(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  async deliveredSinceNow(count: number): Promise<void> {
    for (const { runtime, wanted } of this.nodes.map((node) => ({
      ...node,
      wanted: delivered(node.runtime).length + count,
    }))) {
      await waitFor(
        `${count} more events`,
        () => delivered(runtime).length >= wanted || undefined,
        BACK_WITHIN_MS,
      );
    }
  }

  async saysReady(): Promise<void> {
    for (const { agent, name } of this.nodes) {
      await waitFor(
        `${name} is ready`,
        async () => (await agent.ask('/readyz'))?.status === 200 || undefined,
        BACK_WITHIN_MS,
      );
    }
  }

  /** Nothing is under way any more, and the store has exactly what the truths have. */
  async expectEverythingOnce(): Promise<void> {
    this.still();
    for (const node of this.nodes) await this.#expectEverythingOnce(node);
    expect(await this.#system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
  }

  async stop(): Promise<void> {
    this.still();
    for (const { agent } of this.nodes) await agent.stop();
    for (const { runtime } of this.nodes) await runtime.stop();
  }

  async #expectEverythingOnce({ name, runtime, agent }: FleetNode): Promise<void> {
    await waitFor(`${name} has every event`, async () => {
      return (await received(agent)) === delivered(runtime).length || undefined;
    });
    await waitFor(`every event of ${name} that is due has its verdict`, async () => {
      return (await metric(agent, 'plegwatch_pending_events')) === 0 || undefined;
    });
    await waitFor(
      `everything of ${name} is acknowledged`,
      async () => (await unacknowledged(agent)) === 0 || undefined,
      BACK_WITHIN_MS,
    );
    const rows = await this.#system.sql<{ event: string }>(
      "SELECT container_id || ' ' || event_type AS event FROM plegwatch.container_events WHERE node = $1",
      name,
    );
    const expected = delivered(runtime).map(({ id, type }) => `${id} ${type}`);
    expect(rows.map(({ event }) => event).sort()).toEqual(expected.sort());
    const epochs = await this.#system.sql<{ acked_seq: number; last_seq: number; records_lost: number }>(
      'SELECT acked_seq, last_seq, records_lost::int4 FROM plegwatch.epochs WHERE node = $1',
      name,
    );
    expect(epochs).toHaveLength(1);
    for (const { acked_seq, last_seq, records_lost } of epochs)
      expect([acked_seq, records_lost]).toEqual([last_seq, 0]);
  }
}

/** What a program has logged of a level. */
export function logged(program: LocalPlegwatch, level: string): { readonly msg: string }[] {
  const lines = program.log().split('\n');
  return lines.filter((line) => line.includes(`"level":"${level}"`)).map((line) => JSON.parse(line));
}

/** Records that an agent has and the store has not acknowledged. */
export const unacknowledged = async (agent: LocalPlegwatch): Promise<number> =>
  (await metric(agent, 'plegwatch_unacked_records')) ?? 0;

/** The events that the truth says were given to a subscriber. */
function delivered(runtime: SimulatedRuntime) {
  return runtime.truth.entries.flatMap((entry) => (entry.what === 'event' && entry.delivered ? [entry] : []));
}

async function received(agent: LocalPlegwatch): Promise<number> {
  const body = (await agent.ask('/metrics'))?.body ?? '';
  const counts = [...body.matchAll(/^plegwatch_events_received_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, n]) => sum + Number(n), 0);
}
