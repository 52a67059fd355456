/*
 * GET /api/fallbacks: which kubelets gave up their event stream, since when and until when: the rows of `plegwatch fallbacks`, and how many began on
 * each day. The answer to the same period, to the minute, is remembered for a minute.
 */
import { desc } from 'drizzle-orm';
import { fallbacksOf, NO_FALLBACK } from '../../analysis/fallbacks/fallbacks.ts';
import { ordered } from '../../platform/ordered.ts';
import { bytewise } from '../../store/expressions.ts';
import { fallbackIntervals } from '../../store/schema/views.ts';
import type { Cut, FallbacksAnswer } from '../api.ts';
import { type Period, parametersOf, periodIn } from '../parameters.ts';
import { OF_A_MINUTE, remembered, toMinutes } from '../remembered.ts';
import { type Reader, readEach } from './reader.ts';
import { readFallbacks, readObservedDays } from './statements.ts';
import { endOf, lastEnded } from './timelineRows.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 400;
/** Rows of one day of one cluster each. */
const MAX_DAY_ROWS = 20_000;

export function fallbacksAnswers(reader: Reader): (query: URLSearchParams) => Promise<FallbacksAnswer> {
  const answers = remembered<FallbacksAnswer>(OF_A_MINUTE);
  return async (query) => {
    const period = periodIn(parametersOf(query, ['from', 'to', 'last']), 30 * DAY_MS, MAX_DAYS, new Date());
    return answers.ask(toMinutes(period), () => fallbacksAnswer(reader, period));
  };
}

async function fallbacksAnswer(reader: Reader, period: Period): Promise<FallbacksAnswer> {
  const { clusters } = reader;
  const [from, to] = [period.from.toISOString(), period.to.toISOString()];
  const view = fallbackIntervals;
  const lasted = fallbacksOf({ cluster: clusters ?? undefined, node: undefined, ...period });
  const parts = await readEach(reader, async (runner) => {
    const rows = await lastEnded(runner, { to }, ['from', 'to'], (db) =>
      db
        .select({
          ...{ cluster: view.cluster, node: view.node, notBefore: view.not_before, from: view.from_at },
          ...{ to: view.to_at, hours: view.hours, mode: view.mode, reason: view.reason },
          ...{ nextMode: view.next_mode, brokeWith: view.our_stream_ended_with, findings: view.findings },
          ...{ kubeletVersion: view.kubelet_version },
          ...{ runtimeName: view.runtime_name, runtimeVersion: view.runtime_version },
        })
        .from(view)
        .where(lasted)
        .orderBy(endOf(view.to_at), desc(view.from_at), bytewise(view.cluster), bytewise(view.node)),
    );
    const { rows: days } = await runner.run(readFallbacks, [clusters, from, to, MAX_DAY_ROWS]);
    const { rows: observed } = await runner.run(readObservedDays, [clusters, from, to]);
    return { rows, days, observed };
  });
  const rows = ordered(
    parts.map((part) => part.rows.rows),
    (row) => Date.parse(row.from),
    (row) => row.cluster,
    (row) => row.node,
  );
  // From then on the rows of every part are complete.
  const cuts = parts.flatMap((part) => part.rows.cut ?? []);
  const cut = cuts.reduce<Cut | null>(
    (last, each) => (last === null || each.until > last.until ? each : last),
    null,
  );
  const days = ordered(
    parts.map((part) => part.days),
    (row) => row.cluster,
    (row) => row.day,
  );
  const observed = (parts[0]?.observed ?? []).map(({ day }, at) => ({
    day,
    nodes: parts.reduce((sum, part) => sum + (part.observed[at]?.nodes ?? 0), 0),
  }));
  const now = new Date().toISOString();
  return {
    now,
    from,
    to,
    rows: { rows, cut },
    days,
    observed,
    empty: rows.length === 0 ? NO_FALLBACK : null,
  };
}
