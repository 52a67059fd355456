/*
 * `plegwatch finding`: on a history that a controller stored, as a reader who may see one cluster only.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentIncarnation } from '../support/batches.ts';
import { plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { hexId, missedFinding } from '../support/records.ts';

const ID = hexId(1);
/** Ends a table, begins another line, mentions somebody, and is an escape for terminals. */
const HOSTILE = 'cart|`\n# @everyone\u001b[2J';

let server: TestServer;
let databaseUrl: string;
let reader: string;
let missed: string;

needs('postgres')('plegwatch finding', () => {
  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    const controller = await server.role(databaseUrl, 'controller');
    reader = await server.role(databaseUrl, 'reader');
    await query(databaseUrl, 'SELECT store.grant_controller($1)', [new URL(controller).username]);
    await query(databaseUrl, `SELECT store.grant_reader($1, 'test')`, [new URL(reader).username]);
    await commitAll(controller, [agentIncarnation('node-a', 1, 120_000).batch(1, evidence())]);
    const [found] = await query<{ finding_id: string }>(
      databaseUrl,
      `SELECT finding_id FROM plegwatch.findings WHERE kind = 'missed' ORDER BY seq LIMIT 1`,
    );
    missed = found?.finding_id ?? '';
    await query(
      databaseUrl,
      `INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, value_ms)
       SELECT finding_id, node_id, cluster_id, day, u.what, detected_at, u.ms FROM store.finding,
              (VALUES ('lag_min', 9000), ('lag_max', 12000), ('lag_anomalous', 1), ('overdue', NULL)) AS u (what, ms)
       WHERE finding_id = $1`,
      [missed],
    );
  });
  afterAll(() => server?.stop());

  const finding = (...args: string[]) => plegwatch(['finding', '--database-url', reader, ...args]);

  test('a stranger reads what was due, what was seen of it, why nothing else explains it, and how to check it', async () => {
    const { code, stdout, stderr } = await finding(missed);
    expect([code, stderr]).toEqual([0, '']);
    const titles = [
      `missed STOPPED   ${missed}`,
      'What was due, and between which moments',
      'What lists and the stream showed of it',
      'Why nothing else explains it',
      'Versions and limits',
      'How far the published status was behind',
      'Check it',
    ];
    const at = titles.map((title) => stdout.indexOf(title));
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(at).not.toContain(-1);
    expect(stdout).toMatch(/It happened between 2\S+\.\d{6}Z and 2\S+\.\d{6}Z\./);
    expect(stdout).toContain(`lists showed it running, then non-existent`);
    expect(stdout).toContain(
      'after at least 9000 ms and at most 12.0 s, which is longer than usual on this node',
    );
    expect(stdout).toMatch(/plegwatch audit --cluster test --node node-a --from \S+Z --to \S+Z/);
    expect(stdout).toMatch(/journalctl -u containerd --since '.* UTC' --until '.* UTC' \| grep 0+1$/m);
  });

  test('that the event was overdue is said before the verdict, and not as something that became known later', async () => {
    const { stdout } = await finding(missed);
    const overdue = stdout.indexOf('it was overdue: no such event of it had been received by then');
    expect(overdue).toBeGreaterThan(stdout.indexOf('What lists and the stream showed of it'));
    expect(overdue).toBeLessThan(stdout.indexOf('Why nothing else explains it'));
    expect(stdout).not.toContain('later: overdue');
  });

  test('a finding says whether it is about a sandbox, and a container without a name is none', async () => {
    const incarnation = agentIncarnation('node-named', 1, 120_000);
    const of = (no: number) => missedFinding({ findingId: randomUUID(), containerId: hexId(no) });
    const identity = (no: number, isSandbox: boolean) => ({
      ...{ id: hexId(no), sandbox: hexId(60), isSandbox, podUid: 'uid', namespace: 'shop', pod: 'cart' },
      ...{ container: '', attempt: 0 },
    });
    const objects = [identity(60, true), identity(61, false)];
    await commitAll(databaseUrl, [incarnation.batch(1, [of(60), of(61)], { objects })]);
    const rows = await query<{
      finding_id: string;
      container_name: string | null;
      is_sandbox: boolean | null;
    }>(
      databaseUrl,
      `SELECT finding_id, container_name, is_sandbox FROM plegwatch.findings WHERE node = 'node-named' ORDER BY seq`,
    );
    expect(rows).toMatchObject([
      { container_name: null, is_sandbox: true },
      { container_name: null, is_sandbox: null },
    ]);
    const texts = await Promise.all(rows.map(({ finding_id }) => finding(finding_id)));
    expect(texts[0]?.stdout).toContain('(sandbox)');
    expect(texts[1]?.stdout).toContain('(name unknown)');
  });

  test('the audit that it names confirms or refutes just that finding', async () => {
    const { stdout } = await finding(missed);
    const command = /plegwatch (audit .*)$/m.exec(stdout)?.[1] ?? '';
    const audit = await plegwatch([...command.split(' '), '--database-url', reader]);
    expect(audit.stdout).toMatch(/follow from the other records/);
  });

  test('JSON has every column of the view, and the rows that the finding rests on', async () => {
    const { stdout } = await finding(missed.toUpperCase(), '-o', 'json');
    const json = JSON.parse(stdout);
    const columns = await query<{ name: string }>(
      databaseUrl,
      `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'plegwatch.findings'::regclass AND attnum > 0`,
    );
    expect(Object.keys(json)).toEqual(expect.arrayContaining(columns.map(({ name }) => name)));
    expect(json).toMatchObject({ kind: 'missed', container_id: ID, lag_max_ms: 12_000, proof: { v: 1 } });
    const [{ n }] = (await query<{ n: number }>(
      databaseUrl,
      'SELECT count(*)::int4 AS n FROM plegwatch.finding_evidence WHERE finding_id = $1',
      [missed],
    )) as [{ n: number }];
    expect(json.evidence).toHaveLength(n);
    expect(json.window_from).toMatch(/\.\d{6}Z$/);
  });

  test('an issue for the developers of the runtime names no cluster, node, pod or container unless asked to', async () => {
    const issue = (await finding(missed, '-o', 'markdown')).stdout;
    expect(issue).toMatch(/^# missed STOPPED: `containerd /);
    expect(issue).toContain(ID);
    for (const name of ['node-a', 'cart-7', 'shop', '`test`', '`app`']) expect(issue).not.toContain(name);
    const named = (await finding(missed, '-o', 'markdown', '--with-names')).stdout;
    expect(named).toContain('| cluster, node | `test`, `node-a` |');
    expect(named).toContain('| pod | `shop/cart-7` |');
  });

  test('a hostile name ends no line, table or code of the issue, and reaches no terminal', async () => {
    const [hostile] = await query<{ finding_id: string }>(
      databaseUrl,
      `UPDATE store.finding SET pod_name = $1 WHERE kind = 'unannounced' RETURNING finding_id`,
      [HOSTILE],
    );
    const id = hostile?.finding_id ?? '';
    const issue = (await finding(id, '-o', 'markdown', '--with-names')).stdout;
    expect(issue).toContain('| pod | ``shop/cart\\|`\\u000a# @everyone\\u001b[2J`` |');
    const text = (await finding(id)).stdout;
    expect(text).toContain('shop/cart|`\\u000a# @everyone\\u001b[2J');
    expect(`${issue}${text}`).not.toMatch(/(?!\n)\p{C}/u);
  });

  test('each finding of every kind can be printed', async () => {
    const rows = await query<{ finding_id: string; kind: string }>(
      databaseUrl,
      'SELECT DISTINCT ON (kind) finding_id, kind FROM plegwatch.findings',
    );
    expect(rows.length).toBeGreaterThanOrEqual(4);
    for (const { finding_id, kind } of rows) {
      const { code, stdout } = await finding(finding_id);
      expect([code, stdout]).toEqual([0, expect.stringMatching(new RegExp(`^${kind}( |$)`, 'm'))]);
    }
  });

  test('an id that is none, is unknown, or belongs to another cluster is refused with what to do', async () => {
    const [none, wrong, unknown] = await Promise.all([
      finding(),
      finding('6f1c9a52'),
      finding('00000000-0000-4000-8000-000000000000'),
    ]);
    expect([none.code, wrong.code, unknown.code]).toEqual([2, 2, 1]);
    expect(none.stderr).toContain("missing required argument 'ID'");
    expect(wrong.stderr).toContain('ID must be the id of a finding');
    expect(unknown.stderr).toContain('[NOT_FOUND]');
    const elsewhere = await finding(missed, '--cluster', 'other');
    expect([elsewhere.code, elsewhere.stderr]).toEqual([1, expect.stringContaining('[NOT_FOUND]')]);
  });

  test('an id that several nodes use names them, and --node chooses one', async () => {
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name, first_seen, last_seen, incarnation, context_no)
       SELECT cluster_id, 'node-copy', now(), now(), 1, 1 FROM store.cluster WHERE name = 'test'`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, cause, proof)
       SELECT f.finding_id, f.detected_at, f.day, n.node_id, f.context_id, 9, f.cluster_id, 'late', '', '{}'
       FROM store.finding f, store.node n WHERE f.finding_id = $1 AND n.name = 'node-copy'`,
      [missed],
    );
    const both = await finding(missed);
    expect([both.code, both.stderr]).toEqual([
      2,
      expect.stringMatching(/node-a of cluster test, node-copy of/),
    ]);
    const { code, stdout } = await finding(missed, '--node', 'node-a');
    expect([code, stdout]).toEqual([0, expect.stringContaining('missed STOPPED')]);
  });
});
