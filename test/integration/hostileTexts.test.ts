/*
 * Texts that a hostile node sends in every field that people read: escape sequences, line ends, characters that reorder or hide text.
 * They reach no terminal, and cost no report: not that of the node, and not that of another.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { PROFILES } from '../../devtools/simulator/profiles.ts';
import { startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { startReportWriter } from '../../src/controller/reports/writer.ts';
import { NODES, PLEG_REPORTS } from '../../src/kube/object.ts';
import { printable } from '../../src/platform/printable.ts';
import { CLUSTER } from '../support/batches.ts';
import { CLI } from '../support/build.ts';
import { runText, silent } from '../support/database.ts';
import { KubeBed } from '../support/kubeBed.ts';
import { needs } from '../support/needs.ts';
import { installPlegReports } from '../support/plegreports.ts';
import { waitFor } from '../support/waitFor.ts';

/** Clears the screen, forges a line of a table, turns the text around, and hides a letter. */
const HOSTILE = '\u001b[2J\u009b31m\nnode-x   Evented   Active   0\u202e\u2066\u200b\u{e0041}';
const OBEYED = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/u;

const bed = new KubeBed();
const running: { stop(): Promise<void> }[] = [];

needs(
  'kube-apiserver',
  'etcd',
  'postgres',
)('hostile texts', () => {
  beforeAll(() => installPlegReports(bed.admin));
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop();
  });
  test('a report with hostile versions, reasons, errors and pod names is written, with escapes in their place', async () => {
    await hostileNode('hostile');
    await bed.admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'hostile' } });
    start();
    const status = await statusOf('hostile');
    const shown = printable(HOSTILE);
    expect(status).toMatchObject({
      agent: { version: shown },
      runtime: { name: shown, version: shown },
      kubelet: { version: shown },
      stream: { reason: shown, lastError: shown },
      missedEvents: [{ pod: shown }],
    });
    expect(JSON.stringify(status)).not.toMatch(OBEYED);
  });

  test('a node with an absurd clock has a report, and keeps no other node from its own', async () => {
    for (const name of ['impossible', 'ordinary']) {
      const id = await bed.evidence.node(name);
      if (name === 'impossible')
        await run("UPDATE store.node_state SET mode_since = '10000-01-01' WHERE node_id = $1", [id]);
      await bed.evidence.due(id);
      await bed.admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    }
    start();
    expect(await statusOf('ordinary')).toMatchObject({ mode: 'Unknown' });
    expect(await statusOf('impossible')).toMatchObject({ modeSince: '9999-12-31T23:59:59Z' });
  });

  test('plegwatch report prints one line for each node, and nothing that a terminal obeys', async () => {
    await hostileNode(`node ${HOSTILE}`);
    const rows = await runText(bed.store, 'SELECT name FROM store.node');
    for (const output of ['table', 'wide', 'json', 'yaml', 'csv']) {
      const access = ['--cluster', CLUSTER, '--database-url', bed.postgres.url];
      const { stdout } = await plegwatch('report', ...access, '-o', output);
      expect(stdout).not.toMatch(OBEYED);
      if (output === 'json' || output === 'yaml') {
        const names = (output === 'json' ? JSON.parse(stdout) : parse(stdout)).items.map(
          (item: { metadata: { name: string } }) => item.metadata.name,
        );
        expect(names).toContain(`node ${HOSTILE}`);
      } else {
        expect(stdout.trimEnd().split('\n')).toHaveLength(1 + rows.length);
      }
    }
  });

  test('plegwatch doctor prints a line for each check, whatever the runtime says', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'hostile-'));
    const socket = join(dir, 'cri.sock');
    const profile = { ...PROFILES['containerd-2.1'], runtimeVersion: `2.1.9${HOSTILE}` };
    const runtime = await startSimulatedRuntime({ socket, profile });
    try {
      const { stdout } = await plegwatch('doctor', '--cri-endpoint', `unix://${socket}`);
      expect(stdout).toContain(printable(HOSTILE));
      expect(stdout).not.toMatch(OBEYED);
      expect(stdout.match(/^(ok|warning|failed) /gm)).toHaveLength(3);
      expect(stdout).not.toMatch(/^node-x/m);
    } finally {
      await runtime.stop();
      rmSync(dir, { recursive: true });
    }
  });

  test('an error on the command line repeats nothing that a terminal obeys', async () => {
    const { stderr } = await plegwatch(
      'report',
      '--cluster',
      CLUSTER,
      '--database-url',
      `postgres://${HOSTILE}`,
    );
    expect(stderr).not.toBe('');
    expect(stderr).not.toMatch(OBEYED);
  });
});

const run = (text: string, values: readonly unknown[]) => runText(bed.store, text, values);

/** A node whose agent sent the hostile text wherever it can; its report is due. */
async function hostileNode(name: string): Promise<void> {
  const id = await bed.evidence.node(name);
  await bed.evidence.missed(id, HOSTILE);
  await run(
    `UPDATE store.context SET runtime_name = $2, runtime_version = $2, kubelet_version = $2, agent_version = $2 WHERE node_id = $1`,
    [id, HOSTILE],
  );
  await run(
    `UPDATE store.node_state SET stream_reason = $2, stream_error = $2, relist_healthy = false, relist_reason = $2 WHERE node_id = $1`,
    [id, HOSTILE],
  );
  await bed.evidence.due(id);
}

function start(): void {
  const nodes = startNodeWatch({ kube: bed.admin, log: silent });
  const pace = { pollMs: 25, minIntervalMs: 100, firstAgentMs: 50 };
  running.push(
    startReportWriter({
      store: bed.store,
      kube: bed.admin,
      nodes,
      cluster: CLUSTER,
      log: silent,
      onResult: () => undefined,
      pace,
    }),
    nodes,
  );
}

const statusOf = (name: string): Promise<object> =>
  waitFor(`the report of ${name}`, async () => {
    const status: unknown = (await bed.admin.get(PLEG_REPORTS, name))?.['status'];
    return typeof status === 'object' && status !== null ? status : undefined;
  });

const plegwatch = (...args: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], (_error, stdout, stderr) => resolve({ stdout, stderr }));
  });
