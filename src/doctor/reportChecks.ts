/*
 * Whether a controller keeps the reports: every Node has one, and none is older than a controller that works lets it become.
 */
import * as v from 'valibot';
import { saysUnknown } from '../controller/reports/unknown.ts';
import { refreshAfterMs } from '../controller/reports/writer.ts';
import { type KubeClient, pagesOf } from '../kube/client.ts';
import { type KubeObject, NODES, PLEG_REPORTS } from '../kube/object.ts';
import { type CheckResult, failed, ok, warning } from './check.ts';

/** For this long a report may be due and wait for its turn, and so may the first one of a new Node. */
const PATIENCE_MS = 120_000;
const MAX_NAMES = 5;
const NAME = 'reports';
const CURE = 'Look at the log of the controller that leads: docs/runbooks/PlegwatchReportsLate.md.';

const StatusSchema = v.looseObject({ observedAt: v.string() });

/** `now`: in milliseconds since 1970. */
export async function checkReports(kube: Pick<KubeClient, 'list'>, now: number): Promise<CheckResult> {
  const reports = new Map<string, KubeObject>();
  for await (const { items } of pagesOf(kube, PLEG_REPORTS, {}))
    for (const report of items) reports.set(report.metadata.name, report);
  const nodes: KubeObject[] = [];
  for await (const { items } of pagesOf(kube, NODES, { metadataOnly: true })) nodes.push(...items);

  const oldAfterMs = refreshAfterMs(nodes.length) + PATIENCE_MS;
  const ageOf = (at: string | null) => (at === null ? 0 : now - Date.parse(at));
  const withReport = nodes.flatMap(({ metadata: { name } }) => {
    const report = reports.get(name);
    const observedAt = report === undefined ? null : observedAtOf(report);
    return report === undefined || observedAt === null ? [] : [{ name, report, age: ageOf(observedAt) }];
  });
  const there = new Set(withReport.map(({ name }) => name));
  const unknown = withReport.filter(({ report }) => saysUnknown(report));
  const old = withReport.filter(({ age }) => age > oldAfterMs);
  const missing = nodes
    .map(({ metadata }) => metadata)
    .filter(({ name, creationTimestamp }) => !there.has(name) && ageOf(creationTimestamp) > PATIENCE_MS);

  const of = (some: readonly { readonly name: string }[]) => `${some.length} of ${nodes.length} Nodes`;
  if (unknown.length > 0)
    return failed(NAME, `no controller can work, say the reports of ${of(unknown)}`, CURE);
  if (old.length > 0) {
    const minutes = Math.round(oldAfterMs / 60_000);
    return failed(NAME, `the reports of ${of(old)} are older than ${minutes} minutes: ${namesOf(old)}`, CURE);
  }
  if (missing.length > 0) return warning(NAME, `${of(missing)} have no report: ${namesOf(missing)}`, CURE);
  return ok(NAME, `the reports of ${of(withReport)} are there and not old`);
}

function observedAtOf({ status }: KubeObject): string | null {
  return v.is(StatusSchema, status) ? status.observedAt : null;
}

function namesOf(some: readonly { readonly name: string }[]): string {
  const names = some.slice(0, MAX_NAMES).map(({ name }) => name);
  return some.length > names.length ? `${names.join(', ')} and more` : names.join(', ');
}
