/*
 * The dashboards of the chart, and what they ask Prometheus and Postgres.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

const DASHBOARDS = new URL('../../helm/plegwatch/dashboards', import.meta.url).pathname;

const datasource = v.object({ type: v.string(), uid: v.string() });

/** The least that Grafana needs. */
const DashboardSchema = v.object({
  uid: v.pipe(v.string(), v.maxLength(40)),
  title: v.string(),
  schemaVersion: v.number(),
  templating: v.object({
    list: v.array(v.object({ name: v.string(), type: v.string(), query: v.unknown() })),
  }),
  panels: v.array(
    v.object({
      id: v.number(),
      type: v.string(),
      title: v.string(),
      gridPos: v.object({ x: v.number(), y: v.number(), w: v.number(), h: v.number() }),
      datasource: v.optional(datasource),
      targets: v.optional(
        v.array(
          v.object({
            refId: v.string(),
            datasource,
            format: v.optional(v.string()),
            expr: v.optional(v.string()),
            rawSql: v.optional(v.string()),
          }),
        ),
      ),
    }),
  ),
});
type DashboardJson = v.InferOutput<typeof DashboardSchema>;

export interface DashboardQuery {
  readonly panel: string;
  readonly text: string;
  readonly format: string;
}

export interface Dashboard {
  readonly file: string;
  readonly json: DashboardJson;
  readonly promql: readonly string[];
  readonly sql: readonly DashboardQuery[];
}

export const dashboards: readonly Dashboard[] = readdirSync(DASHBOARDS).map((file) => {
  const json = v.parse(DashboardSchema, JSON.parse(readFileSync(join(DASHBOARDS, file), 'utf8')));
  const targets = json.panels.flatMap(({ title, targets: all = [] }) =>
    all.map((target) => ({ ...target, panel: title })),
  );
  return {
    file,
    json,
    promql: targets.flatMap(({ expr }) => expr ?? []),
    sql: [
      ...targets.flatMap(({ panel, rawSql, format = 'table' }) =>
        rawSql === undefined ? [] : [{ panel, text: rawSql, format }],
      ),
      ...variables(json),
    ],
  };
});

/** A variable whose query is text is one of Postgres; those of Prometheus have an object. */
function variables({ templating }: DashboardJson): DashboardQuery[] {
  return templating.list.flatMap(({ name, type, query }) =>
    type === 'query' && typeof query === 'string'
      ? [{ panel: `the variable ${name}`, text: query, format: 'table' }]
      : [],
  );
}
