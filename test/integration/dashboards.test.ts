/*
 * The dashboards: promtool parses their PromQL, a real Postgres runs their SQL, and the chart makes ConfigMaps of them.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { type Dashboard, type DashboardQuery, dashboards } from '../support/dashboards.ts';
import { startServer, type TestServer } from '../support/database.ts';
import { promtool, renderMonitoring } from '../support/monitoring.ts';
import { needs } from '../support/needs.ts';
import { events, missedFinding, relistMinute, streamSession } from '../support/records.ts';

const NODE = 'node-a';
/** Panels of the evidence below, and with them the sense of their conditions: they must have rows. */
const WITH_ROWS = [
  "Fallbacks, and how the agent's stream broke",
  'Missed events by runtime and kubelet',
  'Findings by kind',
  'Relists of the kubelet and of the agent: p99',
  'Missed events',
  'Changes of the mode',
  'Time without evidence',
  'Subscriptions',
  'Agents that are behind',
  'Size by table',
  'the variable cluster',
];

test('there are three dashboards', () => {
  expect(dashboards.map(({ file }) => file).sort()).toEqual(['fleet.json', 'node.json', 'pipeline.json']);
  expect(new Set(dashboards.map(({ json }) => json.uid)).size).toBe(3);
});

test.each(dashboards.map((each) => [each.file, each] as const))(
  '%s has panels that do not overlap, and uses the data sources and variables that it declares',
  (_file, { json, promql, sql }) => {
    const taken = new Set<string>();
    for (const { gridPos } of json.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (const cell of cellsOf(gridPos)) {
        expect(taken.has(cell), cell).toBe(false);
        taken.add(cell);
      }
    }
    expect(new Set(json.panels.map(({ id }) => id)).size).toBe(json.panels.length);
    const declared = json.templating.list.map(({ name }) => name);
    const sources = json.panels.flatMap(({ datasource, targets = [] }) => [
      datasource?.uid,
      ...targets.map((target) => target.datasource.uid),
    ]);
    const used = [...promql, ...sql.map(({ text }) => text), ...sources.map((uid) => uid ?? '')]
      .flatMap((text) => [...text.matchAll(/\$\{?([a-z]\w*)\}?/g)])
      .map(([, name = '']) => name);
    expect([...new Set(used)].filter((name) => !declared.includes(name))).toEqual([]);
    expect(declared.filter((name) => !used.includes(name))).toEqual([]);
  },
);

needs('promtool')('Prometheus', () => {
  test.each(dashboards.map((each) => [each.file, each] as const))(
    'promtool parses every query of %s',
    (_file, dashboard) => {
      const folder = temporaryFolder('dashboards', undefined);
      const rules = dashboard.promql.map((expr, i) => ({ record: `query:${i}`, expr: filled(expr) }));
      writeFileSync(join(folder.dir, 'rules.yaml'), stringify({ groups: [{ name: 'queries', rules }] }));
      const outcome = promtool(folder.dir, 'check', 'rules', '--lint=none', 'rules.yaml');
      folder.remove();
      expect(outcome).toMatchObject({ ok: true });
    },
  );
});

needs('postgres')('Postgres', () => {
  let server: TestServer;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    client = new Client({ connectionString: databaseUrl });
    await client.connect();
    const agent = agentIncarnation(NODE);
    await commitAll(databaseUrl, [agent.batch(1, evidence())]);
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  test.each(dashboards.flatMap(queriesOf))('runs the query of %s', async (title, { panel, text, format }) => {
    const { rows, fields } = await client.query(filledSql(text));
    expect(fields.length, title).toBeGreaterThan(0);
    if (format === 'time_series') {
      // Grafana asks for a time, and takes the text column as the name of the series.
      expect(fields[0]).toMatchObject({ name: 'time', dataTypeID: 1184 });
      expect(fields.map(({ name }) => name)).toContain('metric');
    }
    if (WITH_ROWS.includes(panel)) expect(rows.length, title).toBeGreaterThan(0);
  });
});

needs('helm')('the chart', () => {
  test("makes a ConfigMap of each dashboard, with the label of Grafana's sidecar, and none by default", () => {
    expect(renderMonitoring({}).filter(({ kind }) => kind === 'ConfigMap')).toEqual([]);
    const objects = renderMonitoring({
      dashboards: { enabled: true, namespace: 'grafana', annotations: { grafana_folder: 'Nodes' } },
    });
    expect(objects.map(({ metadata }) => metadata)).toMatchObject(
      ['fleet', 'node', 'pipeline'].map((name) => ({
        name: `plegwatch-dashboard-${name}`,
        namespace: 'grafana',
        labels: { grafana_dashboard: '1' },
        annotations: { grafana_folder: 'Nodes' },
      })),
    );
    const made = objects.map(({ data = {} }) => JSON.parse(Object.values(data)[0] ?? '').uid);
    expect(made.sort()).toEqual(dashboards.map(({ json }) => json.uid).sort());
  });
});

/** A record of each kind that a panel shows, of the last minute. */
function evidence(): EvidenceRecord[] {
  const second = 1_000_000;
  return [
    ...events(1, 2),
    missedFinding(),
    streamSession({ t: 30 * second, closed: 30 * second, code: 'UNAVAILABLE', message: 'EOF' }),
    relistMinute({ t: 50 * second }),
    {
      type: 'gap',
      t: 30 * second,
      gapId: randomUUID(),
      scope: 'stream',
      cause: 'broken',
      from: 30 * second,
      to: null,
    },
    {
      type: 'mode_change',
      t: 32 * second,
      notBefore: 20 * second,
      model: 'EventedCache',
      from: 'Evented',
      to: 'Fallback',
      reason: 'GivenUp',
      proof: { v: 1 },
    },
  ];
}

const queriesOf = ({ file, sql }: Dashboard): (readonly [string, DashboardQuery])[] =>
  sql.map((query) => [`${file}: ${query.panel}`, query] as const);

function cellsOf({ x, y, w, h }: Dashboard['json']['panels'][number]['gridPos']): string[] {
  return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
}

/** A query with values in place of Grafana's variables. */
const filled = (promql: string): string =>
  promql.replaceAll('$__rate_interval', '2m').replaceAll('$namespace', '.*').replaceAll('$node', NODE);

/** As Grafana's Postgres data source expands its macros. */
function filledSql(sql: string): string {
  const from = `'${new Date(Date.now() - 86_400_000).toISOString()}'`;
  const to = `'${new Date(Date.now() + 60_000).toISOString()}'`;
  return sql
    .replaceAll(/\$__timeFilter\(([^)]*)\)/g, `$1 BETWEEN ${from} AND ${to}`)
    .replaceAll(
      /\$__timeGroupAlias\(([^,]*), *\$__interval\)/g,
      `to_timestamp(floor(extract(epoch from $1) / 300) * 300) AS "time"`,
    )
    .replaceAll('$__timeFrom()', from)
    .replaceAll('$__timeTo()', to)
    .replaceAll('$cluster', CLUSTER)
    .replaceAll('$node', NODE);
}
