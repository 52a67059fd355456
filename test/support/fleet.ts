/*
 * Several nodes with pod churn, each with a simulated runtime and an agent. At the end the store holds every event that the
 * runtimes delivered according to their ground truth, each once.
 */
import { expect } from 'vitest';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { LASTING_READER, metric, type System } from './system.ts';
import { waitFor } from './waitFor.ts';

/** Longer than any backoff, with room for a busy machine. */
export const BACK_WITHIN_MS = 240_000;
/** Pods that a node runs at the same time. */
const PODS_PER_NODE = 4;

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

  /** Returns once every agent is subscribed and ready. */
  static async start(system: System, names: readonly string[], settings: PlegwatchSettings): Promise<Fleet> {
    const nodes: FleetNode[] = [];
    const fleet = new Fleet(system, nodes);
    try {
      for (const [i, name] of names.entries()) {
        const runtime = await startSimulatedRuntime({ socket: system.folder(`${name}.sock`), seed: i });
        const agent = await system
          .agent(name, runtime.socket, { ...LASTING_READER, ...settings })
          .catch(async (error: unknown) => {
            await runtime.stop();
            throw error;
          });
        nodes.push({ name, runtime, agent });
      }
      for (const node of nodes) await waitFor('the agent is subscribed', () => node.runtime.subscribers > 0);
      for (const { runtime } of nodes) runtime.runPod({ name: 'first', containers: ['app'] });
      await fleet.becomesReady();
      return fleet;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  get agents(): LocalPlegwatch[] {
    return this.nodes.map(({ agent }) => agent);
  }

  /** Starts a pod and removes the oldest on every node, until `stopChurn`. */
  startChurn(everyMs: number): void {
    this.#timers = this.nodes.map(({ runtime }) =>
      setInterval(() => {
        this.#pods += 1;
        runtime.runPod({ name: `pod-${this.#pods}`, namespace: 'shop', containers: ['app'] });
        const [oldest] = runtime.pods.sandboxes.keys();
        if (runtime.pods.sandboxes.size > PODS_PER_NODE && oldest !== undefined) runtime.removePod(oldest);
      }, everyMs),
    );
  }

  stopChurn(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  async deliveredSinceNow(count: number): Promise<void> {
    for (const { runtime, wanted } of this.nodes.map((node) => ({
      ...node,
      wanted: delivered(node.runtime).length + count,
    }))) {
      await waitFor(`${count} more events`, () => delivered(runtime).length >= wanted, BACK_WITHIN_MS);
    }
  }

  async becomesReady(): Promise<void> {
    for (const { agent, name } of this.nodes) {
      await waitFor(
        `${name} is ready`,
        async () => (await agent.ask('/readyz'))?.status === 200,
        BACK_WITHIN_MS,
      );
    }
  }

  /** Waits until nothing is in flight, then expects the store to equal the ground truth. */
  async expectEverythingOnce(): Promise<void> {
    this.stopChurn();
    for (const node of this.nodes) await this.#expectEverythingOnce(node);
    expect(await this.#system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
  }

  async stop(): Promise<void> {
    this.stopChurn();
    for (const { agent } of this.nodes) await agent.stop();
    for (const { runtime } of this.nodes) await runtime.stop();
  }

  async #expectEverythingOnce({ name, runtime, agent }: FleetNode): Promise<void> {
    await waitFor(`${name} has every event`, async () => {
      return (await received(agent)) === delivered(runtime).length;
    });
    await waitFor(`every pending event of ${name} is judged`, async () => {
      return (await metric(agent, 'plegwatch_pending_events')) === 0;
    });
    await waitFor(
      `everything of ${name} is acknowledged`,
      async () => (await unacknowledged(agent)) === 0,
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

const UNREACHABLE = 'Redis unreachable, records stay in the spool';
const REACHABLE = 'Redis reachable, records are shipped';

/** The log of an agent about the starts and ends of outages of Redis, in order, but for the check at its own start. */
export function outageLines(agent: LocalPlegwatch): string[] {
  const lines = agent.log().split('\n');
  return lines
    .filter((line) => !line.includes('"cure":'))
    .flatMap((line) => [UNREACHABLE, REACHABLE].filter((msg) => line.includes(`"msg":"${msg}"`)));
}

/**
 * The end of each outage is logged before the next one; on a busy machine there may be more of them than were caused. `before`: how many lines about
 * outages are of an earlier test.
 */
export function expectEachOutageLoggedOnce(agent: LocalPlegwatch, caused: number, before = 0): void {
  const changes = outageLines(agent).slice(before);
  const outages = changes.slice(changes.indexOf(UNREACHABLE));
  expect(outages.length).toBeGreaterThanOrEqual(2 * caused);
  expect(outages.filter((msg, i) => msg !== (i % 2 === 0 ? UNREACHABLE : REACHABLE))).toEqual([]);
}

/** The log lines of a program at a level. */
export function logged(program: LocalPlegwatch, level: string): { readonly msg: string }[] {
  const lines = program.log().split('\n');
  return lines.filter((line) => line.includes(`"level":"${level}"`)).map((line) => JSON.parse(line));
}

/** How often a program logged each warning, for the message of a test that fails. */
export function complaints(program: LocalPlegwatch): string {
  const kinds = Map.groupBy(logged(program, 'warn'), (line) => `${line.msg}: ${Reflect.get(line, 'error')}`);
  return [...kinds].map(([kind, lines]) => `${lines.length} times ${kind}`).join('; ');
}

/** A controller logs a message at most five times a minute for each reason. `lines`: all of the last `elapsedMs`. */
export function expectFewLines(lines: readonly { readonly msg: string }[], elapsedMs: number): void {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const label =
      Reflect.get(line, 'reason') ?? Reflect.get(line, 'cause') ?? Reflect.get(line, 'call') ?? '';
    const kind = `${line.msg} ${label}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const limit = 5 * (Math.ceil(elapsedMs / 60_000) + 1);
  expect([...counts].filter(([, count]) => count > limit)).toEqual([]);
}

/** Records of an agent that the store has not acknowledged. */
export const unacknowledged = async (agent: LocalPlegwatch): Promise<number> =>
  (await metric(agent, 'plegwatch_unacked_records')) ?? 0;

/** The events that were delivered to a subscriber according to the ground truth. */
function delivered(runtime: SimulatedRuntime) {
  return runtime.truth.entries.flatMap((entry) => (entry.what === 'event' && entry.delivered ? [entry] : []));
}

async function received(agent: LocalPlegwatch): Promise<number> {
  const body = (await agent.ask('/metrics'))?.body ?? '';
  const counts = [...body.matchAll(/^plegwatch_events_received_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, n]) => sum + Number(n), 0);
}
