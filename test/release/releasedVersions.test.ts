/*
 * Upgrades from every released version: its program, database, spools, inboxes and chart meet the present version. Both run side by side as during an upgrade
 * and after a rollback, and at the end the store has exactly the events that the simulated runtimes delivered.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { defaultMigrationsDir, readMigrations } from '../../src/store/migrations.ts';
import { CLI } from '../support/build.ts';
import { CHART, helm, MINIMAL, NAMESPACE, run, withHome } from '../support/chart.ts';
import { needs } from '../support/needs.ts';
import { type Released, releasedVersions, unpack } from '../support/released.ts';
import { LASTING_READER, metric, migrateWith, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

withHome();

const BACK_WITHIN_MS = 240_000;
const EVENTS = 60;

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
  'helm',
)('an upgrade', () => {
  describe.each(releasedVersions())('from %s', (version) => {
    const dir = mkdtempSync(join(tmpdir(), 'released-'));
    let released: Released;
    let system: System;
    beforeAll(async () => {
      released = unpack(version, dir);
      system = await System.start({ kube: true, cli: released.cli });
    });
    afterAll(async () => {
      await system?.stop();
      rmSync(dir, { recursive: true });
    });

    describe('a running system', () => {
      let nodes: [Node, Node];
      let old: LocalPlegwatch;
      let present: LocalPlegwatch;
      const each = (work: (node: Node) => Promise<void>) => Promise.all(nodes.map(work));
      const receive = () => each((node) => node.receives(EVENTS));
      const areStored = () => each((node) => node.isStored());
      beforeAll(async () => {
        nodes = [await Node.start(system, 'first'), await Node.start(system, 'second')];
        old = await system.controller({}, released.cli);
        await each((node) => node.startAgent(released.cli));
        await receive();
        await areStored();
      });
      afterAll(async () => {
        await each((node) => node.stop());
        for (const controller of [old, present]) await controller?.stop();
      });

      test('loses nothing that waits in inboxes and spools', async () => {
        await ends(old);
        await receive();
        await waitFor(
          'records wait for a controller',
          async () => (await nodes[1].unacknowledged()) >= EVENTS,
        );
        await nodes[0].stopAgent();
        await migrateWith(CLI, system.postgres.url);
        present = await system.controller();
        await nodes[0].startAgent(CLI);
        await areStored();
      });

      const since = Math.max(...readMigrations(defaultMigrationsDir()).map((each) => each.compatibleSince));
      test('lets controllers of before store on beside and instead of the present ones, unless its schema ended that', async () => {
        if (since > released.schemaVersion) {
          await expect(old.restart()).rejects.toThrow('MIGRATION_MISMATCH');
          return;
        }
        await old.restart();
        await receive();
        await areStored();
        await ends(present);
        await receive();
        await nodes[1].isStored();
        await present.restart();
        await areStored();
      });

      test('can be rolled back on a node, and goes on there', async () => {
        for (const [node, cli] of [
          [nodes[0], released.cli],
          [nodes[1], CLI],
        ] as const) {
          await node.stopAgent();
          await node.startAgent(cli);
        }
        await receive();
        await areStored();
      });

      test('leaves a history without an undeclared gap, which the audit confirms, and a report of each node', async () => {
        expect(await system.undeclaredGaps()).toEqual([]);
        expect(await system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
        await system.expectNoDifference();
        for (const { name } of nodes)
          await waitFor(`${name} has a report`, () => system.publishedReport(name));
      });
    });

    test('the chart is accepted by the API server with the values of before, and can be rolled back', async () => {
      // It brings the definition of the resource itself.
      await system.kubectl('delete', 'crd', 'plegreports.plegwatch.dev');
      const hookless = ['--kubeconfig', system.api.kubeconfig, '-n', NAMESPACE, '--no-hooks'];
      const install = ['install', 'plegwatch', released.chart, ...hookless, '--create-namespace'];
      expect(await helm(install, MINIMAL)).toMatchObject({ code: 0 });
      const upgrade = ['upgrade', 'plegwatch', CHART, ...hookless, '--reset-then-reuse-values'];
      expect(await run(where('helm'), upgrade)).toMatchObject({ code: 0 });
      expect(await run(where('helm'), ['rollback', 'plegwatch', ...hookless])).toMatchObject({ code: 0 });
    });
  });
});

/** Ends a program in order; it can be restarted. */
async function ends(program: LocalPlegwatch): Promise<void> {
  await program.kill('SIGTERM');
  await waitFor('the program has ended', () => !program.running());
}

/** A node with a simulated runtime and at most one agent, whose spool stays. */
class Node {
  readonly name: string;
  readonly #system: System;
  readonly #runtime: SimulatedRuntime;
  #agent: LocalPlegwatch | null = null;
  /** Events that were delivered before this agent. */
  #before = 0;
  #pods = 0;

  private constructor(system: System, name: string, runtime: SimulatedRuntime) {
    this.#system = system;
    this.name = name;
    this.#runtime = runtime;
  }

  static async start(system: System, name: string): Promise<Node> {
    await system.addNode(name);
    const socket = system.folder(`cri-${name}.sock`);
    return new Node(system, name, await startSimulatedRuntime({ socket, seed: 1 }));
  }

  async startAgent(cli: string): Promise<void> {
    this.#before = this.#delivered().length;
    this.#agent = await this.#system.agent(this.name, this.#runtime.socket, LASTING_READER, [], cli);
    await waitFor('the agent is subscribed', () => this.#runtime.subscribers > 0, BACK_WITHIN_MS);
  }

  /** Waits until the agent has at least `count` more events, and all of them. */
  async receives(count: number): Promise<void> {
    const wanted = this.#delivered().length + count;
    while (this.#delivered().length < wanted) {
      this.#pods += 1;
      const name = `pod-${this.#pods}`;
      const { sandbox } = this.#runtime.runPod({ name, namespace: 'shop', containers: ['app'] });
      await waitFor('its sandbox runs', () => this.#delivered().some(({ id }) => id === sandbox.id));
      this.#runtime.removePod(sandbox.id);
    }
    await waitFor('the agent has every event', async () => {
      const { body = '' } = (await this.#agent?.ask('/metrics')) ?? {};
      const counts = [...body.matchAll(/^plegwatch_events_received_total\{.*\} (\d+)$/gm)];
      return counts.reduce((sum, [, n]) => sum + Number(n), 0) === this.#delivered().length - this.#before;
    });
  }

  unacknowledged = (): Promise<number> => this.#metric('plegwatch_unacked_records');

  /** Waits until nothing is under way any more; every delivered event is then stored once. */
  async isStored(): Promise<void> {
    await waitFor(
      'every event is judged',
      async () => (await this.#metric('plegwatch_pending_events')) === 0,
    );
    await waitFor('all is acknowledged', async () => (await this.unacknowledged()) === 0, BACK_WITHIN_MS);
    const rows = await this.#system.sql<{ event: string }>(
      "SELECT container_id || ' ' || event_type AS event FROM plegwatch.container_events WHERE node = $1",
      this.name,
    );
    expect(rows.map(({ event }) => event).sort()).toEqual(
      this.#delivered()
        .map(({ id, type }) => `${id} ${type}`)
        .sort(),
    );
  }

  async stopAgent(): Promise<void> {
    await this.#agent?.stop();
    await waitFor('nobody is subscribed', () => this.#runtime.subscribers === 0);
  }

  async stop(): Promise<void> {
    await this.#agent?.stop();
    await this.#runtime.stop();
  }

  async #metric(name: string): Promise<number> {
    if (this.#agent === null) throw new Error(`no agent runs on ${this.name}`);
    return (await metric(this.#agent, name)) ?? 0;
  }

  #delivered() {
    return this.#runtime.truth.entries.flatMap((entry) =>
      entry.what === 'event' && entry.delivered ? [entry] : [],
    );
  }
}
